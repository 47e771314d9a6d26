from __future__ import annotations

import msgspec
import pytest

from everynode.dashboard.curve import MAX_POINTS, ExpectedEnd, add_point, keep_forecast
from everynode.dashboard.model import Point
from everynode.inspect.evaluate import summarise
from everynode.inspect.fleet import Budget, Counts, FleetView, RolloutState
from tests.support.samples import advanced, template


def test_the_history_stays_short_and_keeps_its_first_point() -> None:
    history: list[Point] = []
    for second in range(0, 10 * MAX_POINTS, 5):
        add_point(history, (float(second), second, 0))
    assert len(history) <= MAX_POINTS
    assert history[0] == (0.0, 0, 0)
    assert [each[0] for each in history] == sorted({each[0] for each in history})


def fleet(updated: int, left: float | None, **more: object) -> FleetView:
    changes = {
        "state": RolloutState.PROGRESSING,
        "target": "new",
        "counts": Counts(desired=20, updated=updated, held=5),
        "budget": Budget(field="maxUnavailable", written="2", promised=2, used=2),
        "seconds_left": left,
    }
    return msgspec.structs.replace(summarise(advanced(template())), **{**changes, **more})


def forecast(known: ExpectedEnd | None, view: FleetView, now: float) -> ExpectedEnd:
    made = keep_forecast(known, view, now)
    assert made is not None
    return made


def test_the_forecast_of_the_first_batches_is_kept_beside_what_happens() -> None:
    assert keep_forecast(None, fleet(1, None), 90.0) is None  # no pace to tell it by
    early = forecast(None, fleet(3, 60.0), 100.0)
    assert list(early.line) == [(100, 3), (160, 15)]
    # With one node of a batch of two, the pace is not known well yet.
    first = forecast(forecast(early, fleet(4, 200.0), 102.0), fleet(5, 100.0), 104.0)
    assert list(first.line) == [(104, 5), (204, 15)]
    late = keep_forecast(first, fleet(6, 600.0), 150.0)
    assert late is first
    done = fleet(20, None, state=RolloutState.COMPLETE, counts=Counts(desired=20, updated=20))
    assert keep_forecast(late, done, 800.0) is first


@pytest.mark.parametrize(
    "change",
    [
        {"target": "newer"},
        {"counts": Counts(desired=20, updated=4)},
        {"budget": Budget(field="maxUnavailable", written="4", promised=4, used=2)},
    ],
)
def test_another_rollout_has_another_forecast(change: dict[str, object]) -> None:
    first = forecast(None, fleet(3, 60.0), 100.0)
    second = forecast(first, fleet(4, 30.0, **change), 120.0)
    assert second.line[0] == (120, 4)
