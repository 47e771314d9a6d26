"""How fast pods may be evicted from silent nodes: slower the more of a zone is silent."""

from __future__ import annotations

from typing import Final

from everynode.cluster.machinery.objects import Node

ZONE_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
UNHEALTHY_SHARE: Final = 0.55  # from here on a zone counts as partly disrupted
LARGE: Final = 50  # nodes; smaller zones evict nothing while they are disrupted
PAUSE: Final = 10.0  # simulated seconds between two nodes of a zone
LONG_PAUSE: Final = 100.0


class Zones:
    """Which nodes of which zone are well."""

    def __init__(self) -> None:
        self._well: dict[str, dict[str, bool]] = {}
        self._zone_of: dict[str, str] = {}

    def note(self, node: Node, *, well: bool) -> None:
        """A node was seen."""
        zone = zone_of(node)
        before = self._zone_of.get(node.name)
        if before is not None and before != zone:
            self.forget(node.name)
        self._zone_of[node.name] = zone
        self._well.setdefault(zone, {})[node.name] = well

    def forget(self, name: str) -> None:
        """A node is gone."""
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._well[zone][name]
            if not self._well[zone]:
                del self._well[zone]

    def pause(self, zone: str) -> float | None:
        """Simulated seconds from one evicted node to the next; None while nothing is evicted."""
        if not any(well for nodes in self._well.values() for well in nodes.values()):
            return None  # it must be us who cannot see them
        nodes = self._well.get(zone, {})
        ill = sum(not well for well in nodes.values())
        if ill == len(nodes) or ill <= 2 or ill / len(nodes) < UNHEALTHY_SHARE:
            return PAUSE
        return LONG_PAUSE if len(nodes) > LARGE else None


def zone_of(node: Node) -> str:
    """The zone of a node, with its region."""
    return "/".join(node.metadata.labels.get(label, "") for label in ZONE_LABELS)
