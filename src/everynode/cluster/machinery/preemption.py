"""Which pods of lower priority must go so that a pod fits on a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everynode.api.times import seconds
from everynode.cluster.machinery.filters import Spot, Wish
from everynode.cluster.machinery.fit import misfits


@dataclass(frozen=True, slots=True)
class Sacrifice:
    """The pods to remove from one node."""

    node: str
    victims: tuple[Wish, ...]

    def cost(self) -> tuple[int, int, int, float, str]:
        """The cheapest is taken: lowest highest priority, lowest sum, fewest, youngest, name."""
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        born = [
            seconds(victim.pod.metadata.creation_timestamp) or 0.0
            for victim in self.victims
            if victim.priority == highest
        ]
        return highest, sum(priorities), len(priorities), -min(born), self.node


def choose(wish: Wish, spots: Iterable[Spot]) -> Sacrifice | None:
    """The cheapest way to make room, if there is one."""
    found = [sacrifice for spot in spots if (sacrifice := sacrifice_on(wish, spot)) is not None]
    return min(found, key=Sacrifice.cost) if found else None


def sacrifice_on(wish: Wish, spot: Spot) -> Sacrifice | None:
    """The fewest pods of lower priority without which the pod fits on that node."""
    if spot.node is None:
        return None
    lower = [other for other in spot.pods.values() if other.priority < wish.priority]
    if not lower:
        return None
    load = spot.load_for(wish).copy()
    for other in lower:
        load.remove(other.demand)
    if misfits(wish.demand, load, spot.allocatable):
        return None
    victims = []
    # The most important are spared first, among equals the oldest.
    for other in sorted(lower, key=_importance):
        load.add(other.demand)
        if misfits(wish.demand, load, spot.allocatable):
            load.remove(other.demand)
            victims.append(other)
    return Sacrifice(spot.node.name, tuple(victims)) if victims else None


def _importance(wish: Wish) -> tuple[int, float, str]:
    meta = wish.pod.metadata
    return -wish.priority, seconds(meta.creation_timestamp) or 0.0, wish.pod.key
