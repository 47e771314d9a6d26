"""Eviction rate: the more nodes of a zone are not Ready, the slower its nodes are evicted."""

from __future__ import annotations

from typing import Final

from everynode.components.objects import FullNode

ZONE_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
UNHEALTHY_SHARE: Final = 0.55  # from this share on a zone is partially disrupted
LARGE_ZONE: Final = 50  # nodes; smaller zones evict nothing while partially disrupted
EVICTION_INTERVAL: Final = 10.0  # simulated seconds between the evictions of two nodes of a zone
SLOW_EVICTION_INTERVAL: Final = 100.0


class ZoneHealth:
    """Which nodes of which zone are Ready."""

    def __init__(self) -> None:
        self._healthy: dict[str, dict[str, bool]] = {}
        self._zone_of: dict[str, str] = {}

    def set_node(self, node: FullNode, *, healthy: bool) -> None:
        """A node is new or has changed."""
        zone = zone_of(node)
        before = self._zone_of.get(node.name)
        if before is not None and before != zone:
            self.remove_node(node.name)
        self._zone_of[node.name] = zone
        self._healthy.setdefault(zone, {})[node.name] = healthy

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._healthy[zone][name]
            if not self._healthy[zone]:
                del self._healthy[zone]

    def eviction_interval(self, zone: str) -> float | None:
        """Simulated seconds from one evicted node to the next; None while none is evicted."""
        if not any(healthy for nodes in self._healthy.values() for healthy in nodes.values()):
            return None  # all nodes at once: rather the control plane is cut off
        nodes = self._healthy.get(zone, {})
        unhealthy = sum(not healthy for healthy in nodes.values())
        if unhealthy == len(nodes) or unhealthy <= 2 or unhealthy / len(nodes) < UNHEALTHY_SHARE:
            return EVICTION_INTERVAL
        return SLOW_EVICTION_INTERVAL if len(nodes) > LARGE_ZONE else None


def zone_of(node: FullNode) -> str:
    """The zone of a node, with its region."""
    return "/".join(node.metadata.labels.get(label, "") for label in ZONE_LABELS)
