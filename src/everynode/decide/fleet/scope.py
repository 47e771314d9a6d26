"""Scope (R2): the nodes that may get the target revision, by partition, selector and pause.

A node that the target template excludes does not use up the nodes that the partition allows. Its
pod is removed, or updated in place, only when the partition comes to 0. So a canary with a wrong
node selector removes no pods.
"""

from __future__ import annotations

from sortedcontainers import SortedList

from everynode.api.daemonset import UpdateStrategy, UpdateStrategyType
from everynode.api.int_or_percent import scaled_value

# Whether a node has a target pod, should have one, matches rollingUpdate.selector, and has a pod.
Membership = tuple[bool, bool, bool, bool]
_ABSENT: Membership = (False, False, False, False)


class Scope:
    """The nodes that should be at the target; every other node is held at its revision.

    In scope are the nodes with a target pod, then the selected nodes by name descending, up to
    desired − partition nodes in all. The selected nodes are kept in two ordered lists, inside and
    outside of the scope, so that a change moves only the nodes at the boundary.
    """

    def __init__(self, strategy: UpdateStrategy) -> None:
        rolling = strategy.type is UpdateStrategyType.ROLLING
        self._all_nodes = not rolling
        self._paused = rolling and strategy.paused
        self._partition = strategy.partition
        self._partitioned = rolling and strategy.partition.value > 0
        self._holding = self._partitioned  # a percentage may come to 0: then nothing is held
        self._membership: dict[str, Membership] = {}
        self._unwanted: set[str] = set()  # selected nodes that the target template excludes
        self._inside: SortedList[str] = SortedList()
        self._outside: SortedList[str] = SortedList()
        self._changed: dict[str, None] = {}
        self._members: set[str] = set()  # as of the last rebalance()
        self.desired = 0
        self.updated = 0
        self._misplaced = 0  # nodes that have a pod and should have none

    @property
    def partition_size(self) -> int:
        """How many nodes the partition holds; a percentage is of desired and rounded down."""
        return scaled_value(self._partition, self.desired, round_up=False)

    @property
    def room(self) -> int:
        """How many nodes without a target pod the partition lets into the scope."""
        return max(0, self.desired - self.partition_size - self.updated)

    def update(
        self,
        name: str,
        *,
        holds_target: bool,
        desired: bool,
        selected: bool,
        occupied: bool = False,
    ) -> None:
        """Add a node or update what is known of it; `occupied` is whether it has a pod."""
        membership = (holds_target, desired, selected, occupied and not desired)
        before = self._membership.get(name, _ABSENT)
        if before == membership and name in self._membership:
            return
        self._remove_member(name, before)
        self._membership[name] = membership
        self._add_member(name, membership)
        self._changed[name] = None

    def remove(self, name: str) -> None:
        """Remove a node."""
        membership = self._membership.pop(name, None)
        if membership is not None:
            self._remove_member(name, membership)
            self._members.discard(name)
            self._changed.pop(name, None)

    def rebalance(self) -> list[str]:
        """Move nodes across the boundary; return those that entered or left the scope, by name."""
        if self._partitioned:
            self._move_boundary()
            if self._holding != self._partition_holds():
                self._holding = not self._holding
                self._changed.update(dict.fromkeys(self._unwanted))
        changed = [name for name in self._changed if (name in self) is not (name in self._members)]
        for name in changed:
            if name in self._members:
                self._members.remove(name)
            else:
                self._members.add(name)
        self._changed.clear()
        changed.sort()
        return changed

    def _partition_holds(self) -> bool:
        """Whether the partition holds any node, by the nodes that should have a pod or have one.

        Of desired alone half of one node would be none, and a wrong node selector that leaves one
        node would remove all other pods.
        """
        return scaled_value(self._partition, self.desired + self._misplaced, round_up=False) > 0

    def __contains__(self, name: str) -> bool:
        membership = self._membership.get(name)
        if membership is None:
            return False
        if membership[0] or self._all_nodes:
            return True
        return not self._paused and self._released(name, membership)

    def released(self, name: str) -> bool:
        """Whether selector and partition let the target onto this node, paused or not."""
        membership = self._membership.get(name)
        if membership is None:
            return False
        return membership[0] or self._all_nodes or self._released(name, membership)

    def _released(self, name: str, membership: Membership) -> bool:
        _, desired, selected, _ = membership
        if not selected or not self._holding:
            return selected
        return desired and bool(self._inside) and name >= self._inside[0]

    def _add_member(self, name: str, membership: Membership) -> None:
        holds_target, desired, selected, misplaced = membership
        self.desired += desired
        self._misplaced += misplaced
        self.updated += desired and holds_target
        if selected and not desired:
            self._unwanted.add(name)
        if holds_target or not desired or not selected or not self._partitioned:
            return
        if self._outside and name < self._outside[-1]:
            self._outside.add(name)
        else:
            self._inside.add(name)

    def _remove_member(self, name: str, membership: Membership) -> None:
        holds_target, desired, selected, misplaced = membership
        self.desired -= desired
        self._misplaced -= misplaced
        self.updated -= desired and holds_target
        self._unwanted.discard(name)
        if holds_target or not desired or not selected or not self._partitioned:
            return
        if self._inside and name >= self._inside[0]:
            self._inside.remove(name)
        else:
            self._outside.remove(name)

    def _move_boundary(self) -> None:
        room = self.room
        while len(self._inside) > room:
            name = self._inside.pop(0)
            self._outside.add(name)
            self._changed[name] = None
        while self._outside and len(self._inside) < room:
            name = self._outside.pop()
            self._inside.add(name)
            self._changed[name] = None
