"""F1 and F2: a controller that crashes at any of its requests keeps every promise."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
import pytest

from everynode.sim.explore.campaign import CampaignTotals
from everynode.sim.explore.crash_points import (
    OFFSETS,
    UnsoundPlan,
    crash_points,
    play_point,
    play_stale_point,
    with_point,
)
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.plans.scenarios import SCENARIOS

FIRST = SCENARIOS["first-creation"].plan


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disable logging: controllers that crash log many errors."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_crash_point_keeps_every_promise(name: str) -> None:
    plan = SCENARIOS[name].plan
    totals = CampaignTotals()
    points = crash_points(plan)
    for point in points:
        for outcome in play_point((plan, point)):
            totals.add(outcome)
    told = [(each.result.name, each.result.violations) for each in totals.broken]
    assert told == []
    assert totals.runs == len(points)
    fault_counts = sum(
        number for what, number in totals.fault_counts.items() if what.startswith("crash-")
    )
    assert fault_counts == len(points), "some requests were never made"


def test_a_write_can_end_in_three_ways_and_a_read_in_one() -> None:
    points = crash_points(FIRST)
    ways: dict[int, list[str]] = {}
    for point in points:
        ways.setdefault(point.at_request, []).append(point.name)
    assert sorted(ways) == list(range(len(ways)))
    writes = [each for each in ways.values() if len(each) == 3]
    assert {tuple(each) for each in writes} == {("crash-before", "crash-after", "crash-answered")}
    assert all(each == ["crash-before"] for each in ways.values() if each not in writes)


def test_what_breaks_without_a_crash_is_not_enumerated() -> None:
    bad = Action("set-image", at=5.0, args={"image": "agent:never-ready"})
    plan = Plan(1, nodes=1, manifests=(daemonset(),), actions=(bad,), quiet_at=8, patience=20)
    with pytest.raises(UnsoundPlan, match="not settled"):
        crash_points(plan)


def test_watches_lag_from_the_first_commits_after_a_crash_on() -> None:
    alone, *outcomes = play_stale_point((FIRST, Action("crash-after", at_request=4)))
    assert alone.result.kept
    assert "hold-watch" not in alone.result.fault_counts
    assert len(outcomes) == OFFSETS
    for outcome in outcomes:
        assert outcome.result.kept
        assert outcome.result.fault_counts["hold-watch"] == 1
        assert outcome.result.fault_counts["crash-after"] == 1


def test_a_plan_says_which_crash_it_has() -> None:
    crashed = with_point(FIRST, Action("crash-after", at_request=4))
    assert crashed.name == "first-creation, crash-after at call 4"
    assert crashed.actions[:-1] == FIRST.actions
    assert msgspec.structs.replace(crashed, name=FIRST.name, actions=()) == (
        msgspec.structs.replace(FIRST, actions=())
    )
