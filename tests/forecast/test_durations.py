from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.forecast.durations import estimate_durations

T = 1_767_225_600.0


def pod(
    created: float,
    *,
    run: float = 10.0,
    ready: float = 5.0,
    restarts: int = 0,
    changed: float | None = None,
    hash: str = "new",
    status: str = "True",
) -> Pod:
    """A pod that was created, ran, and became Ready at these times."""
    begun = created if changed is None else changed
    annotations = {}
    if changed is not None:
        state = {"revision": hash, "updateTimestamp": format_time(T + changed)}
        annotations["apps.kruise.io/inplace-update-state"] = msgspec.json.encode(state).decode()
    running = {"startedAt": format_time(T + begun + run)}
    body: dict[str, Any] = {
        "metadata": {
            "name": f"pod-{created}",
            "labels": {"controller-revision-hash": hash},
            "annotations": annotations,
            "creationTimestamp": format_time(T + created),
        },
        "status": {
            "containerStatuses": [
                {"name": "a", "restartCount": restarts, "state": {"running": running}}
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": status,
                    "lastTransitionTime": format_time(T + begun + run + ready),
                }
            ],
        },
    }
    return msgspec.convert(body, Pod)


def estimate(*pods: Pod, at_once: int = 1, min_ready: int = 0, grace: float = 30.0) -> Any:
    return estimate_durations(pods, at_once=at_once, min_ready_seconds=min_ready, grace=grace)


def test_means_of_the_pods_that_are_ready_and_have_not_restarted() -> None:
    found = estimate(
        pod(0, run=8, ready=4),
        pod(0, run=12, ready=6),
        pod(0, run=500, ready=6, restarts=2),
        pod(0, run=500, status="False"),
    )
    assert (found.pull.seconds, found.start.seconds) == (10.0, 5.0)
    assert found.pull.source == "the mean of 2 pods"
    assert found.pull.measured


def test_one_pod_that_took_very_long_counts_three_times_the_median() -> None:
    pods = [pod(0, run=10)] * 9 + [pod(0, run=3000)]
    assert estimate(*pods).pull.seconds == pytest.approx((9 * 10 + 30) / 10)


def test_a_pod_that_took_long_counts_little_where_the_others_take_less_than_a_second() -> None:
    pods = [pod(0, run=0, ready=0)] * 5 + [pod(0, run=180, ready=0)]
    assert estimate(*pods).pull.seconds == pytest.approx(0.5)


def test_without_such_pods_the_durations_are_assumed() -> None:
    found = estimate()
    assert (found.pull.seconds, found.start.seconds, found.stop.seconds) == (5.0, 20.0, 10.0)
    assert all("assumed" in each.source for each in (found.pull, found.start, found.stop))
    assert not found.start.measured


def test_the_times_of_a_pod_that_was_changed_in_place_count_from_there() -> None:
    """Its containers stopped first, which takes as long as a pod takes to stop."""
    found = estimate(pod(0, run=15, ready=5, changed=5000, restarts=1))
    assert found.pull.seconds == 15.0 - found.stop.seconds
    assert found.start.seconds == 5.0


def test_the_time_to_stop_is_the_gap_between_two_pods_of_an_update() -> None:
    # Each takes 7 s to stop, 15 s to become Ready, and is awaited for 3 s more.
    one_by_one = [pod(25.0 * number) for number in range(6)]
    assert estimate(*one_by_one, min_ready=3).stop.seconds == 7.0
    in_pairs = [pod(25.0 * (number // 2)) for number in range(12)]
    found = estimate(*in_pairs, at_once=2, min_ready=3).stop
    assert found.seconds == 7.0
    assert found.source == "the mean of 10 gaps between pods of the last update"


@pytest.mark.parametrize(
    "pods",
    [
        [pod(0.0)] * 6,  # installed all at once
        [pod(0.0), pod(25.0)],  # too few
        [pod(500.0 * number) for number in range(6)],  # longer than their grace period
    ],
)
def test_gaps_that_are_none_are_not_taken_for_the_time_to_stop(pods: list[Pod]) -> None:
    found = estimate(*pods).stop
    assert (found.seconds, found.measured) == (10.0, False)
    assert estimate(*pods, grace=4.0).stop.seconds == 4.0


def test_only_pods_of_the_newest_revision_tell_the_gaps() -> None:
    old = [pod(float(number), hash="old") for number in range(6)]
    new = [pod(10_000 + 22.0 * number) for number in range(6)]
    assert estimate(*old, *new).stop.seconds == 7.0
