from __future__ import annotations

from collections.abc import Iterator

import pytest

from everynode.sim.faults.catalogue import ALL_FAULTS
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.plan import Plan
from everynode.sim.world import play

LISTED = [f"F{number}" for number in range(1, 58) if number != 53]


def test_every_fault_of_the_list_has_a_name() -> None:
    named = {each.id: each.title for each in ALL_FAULTS}
    assert sorted(named, key=lambda id: int(id[1:])) == LISTED
    assert all(named.values())


def _faults_of(plan: Plan) -> list[str]:
    """The faults that certainly occur: at a time, or at one of the first requests."""
    return [each.fault for each in plan.actions if each.fault and each.at_request < 40]


def _covering(wanted: list[str]) -> Iterator[Plan]:
    """A few seeds' plans that together contain all these faults."""
    plans, missing = [generate_plan(seed) for seed in range(300)], wanted
    while missing:
        best = max(
            plans, key=lambda plan: len([each for each in missing if each in _faults_of(plan)])
        )
        yield best
        missing = [each for each in missing if each not in _faults_of(best)]


@pytest.mark.parametrize("first", range(0, len(LISTED), 10))
def test_seeds_strike_with_every_fault(first: int) -> None:
    wanted = LISTED[first : first + 10]
    fault_counts: dict[str, int] = {}
    for plan in _covering(wanted):
        result, _ = play(plan)
        fault_counts |= result.fault_counts
    assert [fault for fault in wanted if fault not in fault_counts] == []
