"""Which nodes the target may move to (R2), kept up to date node by node.

A node that the target template does not want takes no place in the cut: it is emptied, or updated
in place, only once the partition is 0, so that a canary with a wrong node selector empties nothing.
"""

from __future__ import annotations

from sortedcontainers import SortedList

from everynode.api.amount import scale
from everynode.api.daemonset import Strategy, UpdateType

# What a node brings to the scope: does it hold a target pod, want one, and is it selected.
Standing = tuple[bool, bool, bool]
_NOBODY: Standing = (False, False, False)


class Scope:
    """The nodes that live by the target; every other node is held.

    In scope are the nodes with a target pod, then the selected ones by name descending, as many
    as desired − partition leaves. Nodes of the second kind are kept in two ordered lists, inside
    and outside of the cut, so that a change moves only the nodes at the boundary.
    """

    def __init__(self, strategy: Strategy) -> None:
        rolling = strategy.type is UpdateType.ROLLING
        self._everything = not rolling
        self._paused = rolling and strategy.paused
        self._partition = strategy.partition
        self._cutting = rolling and strategy.partition.value > 0
        self._standing: dict[str, Standing] = {}
        self._inside: SortedList[str] = SortedList()
        self._outside: SortedList[str] = SortedList()
        self._touched: dict[str, None] = {}
        self._members: set[str] = set()  # as last told by settle()
        self.desired = 0
        self.updated = 0

    @property
    def withheld(self) -> int:
        """How many nodes the partition keeps; percentages of desired, rounded down."""
        return scale(self._partition, self.desired, round_up=False)

    @property
    def room(self) -> int:
        """How many more nodes the cut lets in beside those that hold a target pod already."""
        return max(0, self.desired - self.withheld - self.updated)

    def put(self, name: str, *, holds_target: bool, wanted: bool, selected: bool) -> None:
        """Take in how a node stands now."""
        standing = (holds_target, wanted, selected)
        before = self._standing.get(name, _NOBODY)
        if before == standing and name in self._standing:
            return
        self._leave(name, before)
        self._standing[name] = standing
        self._enter(name, standing)
        self._touched[name] = None

    def drop(self, name: str) -> None:
        """Forget a node."""
        standing = self._standing.pop(name, None)
        if standing is not None:
            self._leave(name, standing)
            self._members.discard(name)
            self._touched.pop(name, None)

    def settle(self) -> list[str]:
        """Move the boundary to its place; the nodes that came in or went out, by name."""
        if self._cutting:
            self._rebalance()
        changed = [name for name in self._touched if (name in self) is not (name in self._members)]
        for name in changed:
            if name in self._members:
                self._members.remove(name)
            else:
                self._members.add(name)
        self._touched.clear()
        changed.sort()
        return changed

    def __contains__(self, name: str) -> bool:
        standing = self._standing.get(name)
        if standing is None:
            return False
        if standing[0] or self._everything:
            return True
        return not self._paused and self._released(name, standing)

    def released(self, name: str) -> bool:
        """Whether selector and partition let the target onto this node, paused or not."""
        standing = self._standing.get(name)
        if standing is None:
            return False
        return standing[0] or self._everything or self._released(name, standing)

    def _released(self, name: str, standing: Standing) -> bool:
        _, wanted, selected = standing
        if not selected or not self._cutting:
            return selected
        return wanted and bool(self._inside) and name >= self._inside[0]

    def _enter(self, name: str, standing: Standing) -> None:
        holds_target, wanted, selected = standing
        self.desired += wanted
        self.updated += wanted and holds_target
        if holds_target or not wanted or not selected or not self._cutting:
            return
        if self._outside and name < self._outside[-1]:
            self._outside.add(name)
        else:
            self._inside.add(name)

    def _leave(self, name: str, standing: Standing) -> None:
        holds_target, wanted, selected = standing
        self.desired -= wanted
        self.updated -= wanted and holds_target
        if holds_target or not wanted or not selected or not self._cutting:
            return
        if self._inside and name >= self._inside[0]:
            self._inside.remove(name)
        else:
            self._outside.remove(name)

    def _rebalance(self) -> None:
        room = self.room
        while len(self._inside) > room:
            name = self._inside.pop(0)
            self._outside.add(name)
            self._touched[name] = None
        while self._outside and len(self._inside) < room:
            name = self._outside.pop()
            self._inside.add(name)
            self._touched[name] = None
