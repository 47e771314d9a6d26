"""Reported rooms: the nodes that have no room for a pod of the target, as the condition says."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.daemonset import DaemonSet
from everynode.decide.fleet.conditions import PROGRESSING
from everynode.decide.node.reasons import INSUFFICIENT_RESOURCES
from everynode.decide.node.room import Room

_NODES_IN_MESSAGE: Final = re.compile(rf"\d+ {INSUFFICIENT_RESOURCES} \(([^)]*)\)")
_NO_ROOM: Final = "the controller found no room for the new pod"


class ReportedRooms:
    """The nodes that the controller has found to have no room.

    Its condition counts them and names the first few. If nothing moves, the others that wait for
    their turn are among them.
    """

    def __init__(self, ds: DaemonSet) -> None:
        found = [each for each in ds.status.conditions if each.type == PROGRESSING]
        match = _NODES_IN_MESSAGE.search(found[0].message) if found else None
        names = match[1].split(", ") if match is not None else []
        self.some = bool(names)
        self._all = "…" in names and found[0].status == "False"
        self._named = frozenset(names)

    def room_of(self, node: str, target: str, now: float) -> Room | None:
        """Return what is known of a node; None if nothing is."""
        if not self._all and node not in self._named:
            return None
        return Room(target, now, reported=_NO_ROOM)
