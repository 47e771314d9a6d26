from __future__ import annotations

from collections.abc import Iterator

from everynode.sim.draw import draw
from everynode.sim.plan import Plan
from everynode.sim.upheavals import EVERY
from everynode.sim.world import play

LISTED = [f"F{number}" for number in range(1, 51)]


def test_every_fault_of_the_list_has_a_name() -> None:
    named = {each.id: each.title for each in EVERY}
    assert sorted(named, key=lambda id: int(id[1:])) == LISTED
    assert all(named.values())


def _covering(wanted: list[str]) -> Iterator[Plan]:
    """Plans of seeds that have a fault which none before had."""
    missing = dict.fromkeys(wanted)
    for seed in range(1000):
        plan = draw(seed)
        timed = [each.fault for each in plan.happenings if each.call < 40]
        if any(missing.pop(fault, False) is None for fault in dict.fromkeys(timed)):
            yield plan


def test_seeds_strike_with_every_fault() -> None:
    struck: dict[str, int] = {}
    for plan in _covering(LISTED):
        result, _ = play(plan)
        struck |= result.struck
    assert [fault for fault in LISTED if fault not in struck] == []
