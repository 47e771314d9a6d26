from __future__ import annotations

from collections.abc import Iterator

import pytest

from everynode.sim.draw import draw
from everynode.sim.plan import Plan
from everynode.sim.upheavals import EVERY
from everynode.sim.world import play

LISTED = [f"F{number}" for number in range(1, 53)]


def test_every_fault_of_the_list_has_a_name() -> None:
    named = {each.id: each.title for each in EVERY}
    assert sorted(named, key=lambda id: int(id[1:])) == LISTED
    assert all(named.values())


def _faults_of(plan: Plan) -> list[str]:
    """Those that surely strike: at a time, or at one of the first requests."""
    return [each.fault for each in plan.happenings if each.fault and each.call < 40]


def _covering(wanted: list[str]) -> Iterator[Plan]:
    """Few plans of seeds that have all these faults together."""
    plans, missing = [draw(seed) for seed in range(300)], wanted
    while missing:
        best = max(
            plans, key=lambda plan: len([each for each in missing if each in _faults_of(plan)])
        )
        yield best
        missing = [each for each in missing if each not in _faults_of(best)]


@pytest.mark.parametrize("first", range(0, 52, 10))
def test_seeds_strike_with_every_fault(first: int) -> None:
    wanted = LISTED[first : first + 10]
    struck: dict[str, int] = {}
    for plan in _covering(wanted):
        result, _ = play(plan)
        struck |= result.struck
    assert [fault for fault in wanted if fault not in struck] == []
