"""How fast silent nodes lose their pods."""

from __future__ import annotations

import msgspec
import pytest

from everynode.cluster.machinery.objects import Node
from everynode.cluster.machinery.zones import LONG_PAUSE, PAUSE, Zones, zone_of


def node(name: str, zone: str = "a") -> Node:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)


@pytest.mark.parametrize(
    ("ill", "total", "pause"),
    [(1, 10, PAUSE), (5, 10, PAUSE), (6, 10, None), (60, 100, LONG_PAUSE), (10, 10, PAUSE)],
)
def test_the_more_of_a_zone_is_silent_the_slower_it_is_evicted(
    ill: int, total: int, pause: float | None
) -> None:
    zones = Zones()
    zones.note(node("elsewhere", "b"), well=True)
    for index in range(total):
        zones.note(node(f"n{index}"), well=index >= ill)
    assert zones.pause(zone_of(node("n0"))) == pause


def test_when_all_are_silent_nothing_is_evicted() -> None:
    zones = Zones()
    for index in range(4):
        zones.note(node(f"n{index}", "ab"[index % 2]), well=False)
    assert zones.pause("r/a") is None
    zones.note(node("n1", "b"), well=True)
    assert zones.pause("r/a") == PAUSE


def test_nodes_move_and_go() -> None:
    zones = Zones()
    zones.note(node("one", "a"), well=True)
    zones.note(node("one", "b"), well=False)
    assert zones.pause("r/b") is None
    zones.forget("one")
    zones.forget("one")
    assert zones.pause("r/b") is None
