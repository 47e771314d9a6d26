"""Scheduling: when a DaemonSet is reconciled. Everything that decides this is in this file.

A DaemonSet is reconciled:

- immediately, after a change that can unblock a node while no node is being updated;
- after BATCH_DELAY (5 ms), after such a change while nodes are being updated. Pods that were
  created or deleted together become Ready or vanish together; one reconcile handles them all.
  Handling the first at once would take one pod out of every batch, until all go one by one;
- after DEFER_DELAY (200 ms), after any other change;
- at a given time, as the previous reconcile asked for (minReadySeconds, back-off, status).

A reconcile evaluates only the nodes that changed (`ChangedNodes`). Nodes whose change can neither
unblock a node nor lower a count are deferred: they are evaluated together after DEFER_DELAY.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
from collections.abc import Iterable
from math import inf
from typing import Final

from everynode.api.keys import CONTAINERS_READY
from everynode.api.objects import Pod
from everynode.clock import Clock
from everynode.controller.pending_writes import PendingWrite
from everynode.controller.wallclock import WallClock
from everynode.decide.actions import DeletePod, PatchPod
from everynode.decide.node.availability import is_ready

BATCH_DELAY: Final = 0.005
DEFER_DELAY: Final = 0.2
# Event loops count in milliseconds: a timer that fires slightly early would be set again and again.
_TIMER_SLACK: Final = 0.001
# A timer does not notice that the wall clock is set, so it runs no longer than this.
_MAX_TIMER_SECONDS: Final = 60.0
_MAX_SUPERSEDED: Final = 64  # superseded times in the heap that are not worth removing


class Urgency(enum.Enum):
    """How soon a change has to be reconciled."""

    UNBLOCKS = "unblocks"  # immediately, or after BATCH_DELAY while nodes are being updated
    DEFERRED = "deferred"  # after DEFER_DELAY


def pod_urgency(before: Pod | None, after: Pod | None) -> Urgency:
    """Return how soon a change of a pod has to be reconciled."""
    return Urgency.UNBLOCKS if unblocks(before, after) else Urgency.DEFERRED


def unblocks(before: Pod | None, after: Pod | None) -> bool:
    """Whether a change of a pod can unblock a node: the pod is gone, or has become Ready.

    A pod with readiness gates may wait for us when its containers have become ready. Most changes
    unblock nothing: the pod appears, is bound, has started, or begins to terminate.
    """
    if after is None:
        return True
    if is_ready(after):
        return before is None or not is_ready(before)
    return bool(after.spec.readiness_gates) and (
        _are_containers_ready(after) and (before is None or not _are_containers_ready(before))
    )


def _are_containers_ready(pod: Pod) -> bool:
    condition = pod.condition(CONTAINERS_READY)
    return condition is not None and condition.status == "True"


def can_defer(before: Pod | None, after: Pod, write: PendingWrite | None) -> bool:
    """Whether a change that does not unblock a node leaves the counts of the node as they are.

    That is so for a pod that was terminating already, and on a node that counts at its worst
    because of our pending write, unless the change is in another pod that still serves (surge).
    """
    if before is not None and before.terminating:
        return True
    if write is None or isinstance(write.action, PatchPod):
        return False
    deleted_by_us = isinstance(write.action, DeletePod) and write.action.uid == after.uid
    return deleted_by_us or before is None or not is_ready(before)


class ChangedNodes:
    """Nodes of one DaemonSet to evaluate again: at the next reconcile, or after DEFER_DELAY."""

    __slots__ = ("_deferred", "_next", "deferred_until")

    def __init__(self) -> None:
        self._next: dict[str, None] = {}  # a dict, because its order is deterministic
        self._deferred: dict[str, None] = {}
        self.deferred_until: float | None = None  # None while no deferral is running

    def mark(self, node: str) -> None:
        """Evaluate the node at the next reconcile."""
        self._next[node] = None

    def mark_all(self, nodes: Iterable[str]) -> None:
        """Evaluate these nodes at the next reconcile."""
        self._next = dict.fromkeys(nodes)

    def defer(self, node: str) -> None:
        """Evaluate the node when the deferral ends, or earlier if it is marked meanwhile."""
        self._deferred[node] = None

    def start_deferral(self, now: float) -> None:
        """Have the deferred nodes evaluated after DEFER_DELAY, if that is not set already."""
        if self.deferred_until is None:
            self.deferred_until = now + DEFER_DELAY

    def take(self, now: float) -> dict[str, None]:
        """Return the nodes to evaluate now; they are no longer marked or deferred."""
        if self.deferred_until is not None and now >= self.deferred_until:
            self._next.update(self._deferred)
            self._deferred.clear()
            self.deferred_until = None
        taken, self._next = self._next, {}
        for node in taken:
            self._deferred.pop(node, None)
        return taken

    def clock_set_back(self, by: float) -> None:
        """Keep the remaining wait although the wall clock was set back."""
        if self.deferred_until is not None:
            self.deferred_until -= by


class ReconcileQueue:
    """The keys of DaemonSets to reconcile: each waits at most once, at its earliest time.

    Getting a key removes all its times: the reconcile itself schedules the next one.
    Bounded by the number of DaemonSets. There is one consumer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall = WallClock(clock)
        self._due_at: dict[str, float] = {}  # the earliest time asked for, per key
        self._times: list[tuple[float, str]] = []  # a heap of them, and of superseded ones
        self._consumer: asyncio.Future[None] | None = None  # while it sleeps
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    def __len__(self) -> int:
        """How many keys are due now or within DEFER_DELAY."""
        soon = self._clock.now() + DEFER_DELAY
        return sum([when <= soon for when in self._due_at.values()])

    # --- After which delay -------------------------------------------------------------------

    def add_changed(
        self, key: str, urgency: Urgency, changed: ChangedNodes, *, updating: bool
    ) -> None:
        """Reconcile after a change; `updating`: whether nodes are being updated."""
        if urgency is Urgency.DEFERRED:
            changed.start_deferral(self._clock.now())
            self.add_deferred(key)
        elif updating:
            self.add_batched(key)
        else:
            self.add(key)

    def add_written(self, key: str, *, committed: bool, slow_start: bool) -> None:
        """Reconcile after a write to a pod was answered.

        The watch will show a committed write, so that can wait. A slow start cannot: it sends
        the next creates when the first are answered.
        """
        if committed and not slow_start:
            self.add_deferred(key)
        else:
            self.add_batched(key)

    def add(self, key: str) -> None:
        """Reconcile immediately."""
        self.add_at(key, self._clock.now())

    def add_batched(self, key: str) -> None:
        """Reconcile after BATCH_DELAY."""
        self.add_at(key, self._clock.now() + BATCH_DELAY)

    def add_deferred(self, key: str) -> None:
        """Reconcile after DEFER_DELAY."""
        self.add_at(key, self._clock.now() + DEFER_DELAY)

    def add_at(self, key: str, when: float) -> None:
        """Reconcile at that time, or earlier if that was asked for before."""
        known = self._due_at.get(key)
        if known is not None and known <= when:
            return
        self._due_at[key] = when
        heapq.heappush(self._times, (when, key))
        if len(self._times) > 2 * len(self._due_at) + _MAX_SUPERSEDED:
            self._rebuild()
        if self._consumer is not None and when < self._timer_at:
            self._wake_at(when)

    def discard(self, key: str) -> None:
        """Remove a key: the DaemonSet is gone."""
        self._due_at.pop(key, None)

    # --- The consumer ------------------------------------------------------------------------

    async def get(self) -> str:
        """Wait for the next key that is due, earliest first."""
        self._follow_clock()
        while self._next_time() > self._clock.now():
            await self._sleep()
        _, key = heapq.heappop(self._times)
        del self._due_at[key]
        return key

    def _rebuild(self) -> None:
        """Drop superseded times; they would otherwise stay in the heap until they come."""
        self._times = [(when, key) for key, when in self._due_at.items()]
        heapq.heapify(self._times)

    def _follow_clock(self) -> None:
        """Keep the remaining waits although the wall clock was set back."""
        lost = self._wall.set_back()
        if lost > 0:
            self._due_at = {key: when - lost for key, when in self._due_at.items()}
            self._rebuild()

    async def _sleep(self) -> None:
        """Wait until a key is due. The timer stays set if a new key is due before it fires."""
        self._consumer = asyncio.get_running_loop().create_future()
        self._wake_at(self._next_time())
        try:
            await self._consumer
        except BaseException:
            self._stop_timer()
            raise
        finally:
            self._consumer = None

    def _next_time(self) -> float:
        """When the next key is due."""
        times = self._times
        while times and self._due_at.get(times[0][1]) != times[0][0]:
            heapq.heappop(times)  # superseded or discarded
        return times[0][0] if times else inf

    def _wake_at(self, when: float) -> None:
        """Wake the consumer at that time, unless the timer fires before."""
        assert self._consumer is not None
        now = self._clock.now()
        if when <= now:
            if not self._consumer.done():
                self._consumer.set_result(None)
        elif when < self._timer_at:
            self._stop_timer()
            delay = min(when - now, _MAX_TIMER_SECONDS)
            self._timer_at = now + delay
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay + _TIMER_SLACK, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, inf
        self._follow_clock()
        if self._consumer is not None:
            self._wake_at(self._next_time())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, inf
