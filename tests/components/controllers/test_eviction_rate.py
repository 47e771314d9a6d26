"""Eviction rate: how fast pods are evicted from nodes that are not Ready."""

from __future__ import annotations

import msgspec
import pytest

from everynode.components.controllers.eviction_rate import (
    EVICTION_INTERVAL,
    SLOW_EVICTION_INTERVAL,
    ZoneHealth,
    zone_of,
)
from everynode.components.objects import FullNode


def node(name: str, zone: str = "a") -> FullNode:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, FullNode)


@pytest.mark.parametrize(
    ("ill", "total", "pause"),
    [
        (1, 10, EVICTION_INTERVAL),
        (5, 10, EVICTION_INTERVAL),
        (6, 10, None),
        (60, 100, SLOW_EVICTION_INTERVAL),
        (10, 10, EVICTION_INTERVAL),
    ],
)
def test_the_more_of_a_zone_is_silent_the_slower_it_is_evicted(
    ill: int, total: int, pause: float | None
) -> None:
    zones = ZoneHealth()
    zones.set_node(node("elsewhere", "b"), healthy=True)
    for index in range(total):
        zones.set_node(node(f"n{index}"), healthy=index >= ill)
    assert zones.eviction_interval(zone_of(node("n0"))) == pause


def test_when_all_are_silent_nothing_is_evicted() -> None:
    zones = ZoneHealth()
    for index in range(4):
        zones.set_node(node(f"n{index}", "ab"[index % 2]), healthy=False)
    assert zones.eviction_interval("r/a") is None
    zones.set_node(node("n1", "b"), healthy=True)
    assert zones.eviction_interval("r/a") == EVICTION_INTERVAL


def test_nodes_move_and_go() -> None:
    zones = ZoneHealth()
    zones.set_node(node("one", "a"), healthy=True)
    zones.set_node(node("one", "b"), healthy=False)
    assert zones.eviction_interval("r/b") is None
    zones.remove_node("one")
    zones.remove_node("one")
    assert zones.eviction_interval("r/b") is None
