"""Totals: counts, queues and timers over all nodes of a DaemonSet, updated node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import islice
from typing import Final

from sortedcontainers import SortedList

from everynode.decide.node.assessment import NO_COUNTS, Assessment, NodeCounts, Queue
from everynode.decide.node.reasons import IDLE_CODES, PROGRESSING_CODES

# Nodes whose maintenance is planned come after the others (R4).
_SERVED_AFTER: Final = {
    Queue.UPDATE_READY: (Queue.UPDATE_READY_LAST,),
    Queue.SURGE: (Queue.SURGE_LAST,),
}


class Totals:
    """The sums, queues, waiting nodes and timers of all assessments."""

    def __init__(self) -> None:
        self.queues: tuple[SortedList[str], ...] = tuple(SortedList() for _ in Queue)
        self.queued = 0  # how many nodes are in the queues
        self._counts = list(NO_COUNTS)
        self._sums: NodeCounts | None = NO_COUNTS  # of these counts; None after a change
        self.progressing = 0  # nodes with a reason code in PROGRESSING_CODES
        # The nodes that wait for something outside of the controller, by reason code.
        self.waiting: dict[str, SortedList[str]] = {}
        self._timers: SortedList[tuple[float, str]] = SortedList()
        self._finished: dict[str, None] = {}  # nodes that are done or gone since they were taken

    @property
    def sums(self) -> NodeCounts:
        """The counts of all nodes, added up."""
        if self._sums is None:
            self._sums = NodeCounts(*self._counts)
        return self._sums

    @property
    def wake_at(self) -> float | None:
        """When the next node has to be evaluated again without an event."""
        return self._timers[0][0] if self._timers else None

    def first(self, queue: Queue, room: int, *, last_first: bool) -> list[str]:
        """Return the first nodes of a queue, then of the queue that is served last after it."""
        found: list[str] = []
        for each in (queue, *_SERVED_AFTER.get(queue, ())):
            waiting = self.queues[each]
            if waiting and len(found) < room:
                # Slicing a SortedList iterates over the whole list; islice does not.
                found += islice(reversed(waiting) if last_first else waiting, room - len(found))
        return found

    def pop_due(self, now: float) -> list[str]:
        """Remove and return the nodes whose timer is due."""
        due = []
        while self._timers and self._timers[0][0] <= now:
            due.append(self._timers.pop(0)[1])
        return due

    def take_finished(self) -> list[str]:
        """Return the nodes that became done, or are gone, since the last call."""
        taken, self._finished = self._finished, {}
        return list(taken)

    def add(self, assessment: Assessment) -> None:
        """Add the assessment of a new node."""
        if assessment.counts.done:
            self._finished[assessment.name] = None
        self._count(assessment.counts, 1)
        self._enqueue(assessment)
        self._add_reason(assessment)
        self._set_timer(assessment)

    def remove(self, assessment: Assessment) -> None:
        """Remove the assessment of a node."""
        self._finished[assessment.name] = None
        self._count(assessment.counts, -1)
        self._dequeue(assessment)
        self._remove_reason(assessment)
        self._clear_timer(assessment)

    def replace(self, before: Assessment, assessment: Assessment) -> None:
        """Replace the assessment of a node; only what differs is updated."""
        if assessment.counts is not before.counts:
            totals, self._sums = self._counts, None
            for index, value in _difference(before.counts, assessment.counts):
                totals[index] += value
            if assessment.counts.done and not before.counts.done:
                self._finished[assessment.name] = None
        if assessment.queue is not before.queue:
            self._dequeue(before)
            self._enqueue(assessment)
        if assessment.reason.code != before.reason.code:
            self._remove_reason(before)
            self._add_reason(assessment)
        if assessment.wake_at != before.wake_at:
            self._clear_timer(before)
            self._set_timer(assessment)

    def add_all(self, fleet: Collection[Assessment]) -> None:
        """Add many nodes to empty totals: sorting once is cheaper than many insertions."""
        self._finished.update((each.name, None) for each in fleet if each.counts.done)
        for counts, times in Counter([assessment.counts for assessment in fleet]).items():
            self._count(counts, times)
        self.queued += len([assessment for assessment in fleet if assessment.queue])
        for queue in Queue:
            if queue:
                self.queues[queue].update(
                    [assessment.name for assessment in fleet if assessment.queue is queue]
                )
        codes = Counter([assessment.reason.code for assessment in fleet])
        self.progressing += sum([codes[code] for code in codes if code in PROGRESSING_CODES])
        for code in sorted(codes.keys() - IDLE_CODES - PROGRESSING_CODES):
            names = [assessment.name for assessment in fleet if assessment.reason.code == code]
            self.waiting.setdefault(code, SortedList()).update(names)
        self._timers.update([(m.wake_at, m.name) for m in fleet if m.wake_at is not None])

    # --- The parts of an assessment ----------------------------------------------------------

    def _count(self, counts: NodeCounts, times: int) -> None:
        totals, self._sums = self._counts, None
        for index, value in _parts(counts):
            totals[index] += value * times

    def _enqueue(self, assessment: Assessment) -> None:
        if assessment.queue:
            self.queues[assessment.queue].add(assessment.name)
            self.queued += 1

    def _dequeue(self, assessment: Assessment) -> None:
        if assessment.queue:
            self.queues[assessment.queue].remove(assessment.name)
            self.queued -= 1

    def _add_reason(self, assessment: Assessment) -> None:
        code = assessment.reason.code
        if code in PROGRESSING_CODES:
            self.progressing += 1
        elif code not in IDLE_CODES:
            if code not in self.waiting:
                self.waiting[code] = SortedList()
            self.waiting[code].add(assessment.name)

    def _remove_reason(self, assessment: Assessment) -> None:
        code = assessment.reason.code
        if code in PROGRESSING_CODES:
            self.progressing -= 1
        elif code not in IDLE_CODES:
            self.waiting[code].remove(assessment.name)
            if not self.waiting[code]:
                del self.waiting[code]

    def _set_timer(self, assessment: Assessment) -> None:
        if assessment.wake_at is not None:
            self._timers.add((assessment.wake_at, assessment.name))

    def _clear_timer(self, assessment: Assessment) -> None:
        if assessment.wake_at is not None:
            self._timers.discard((assessment.wake_at, assessment.name))


@lru_cache(maxsize=1024)
def _difference(before: NodeCounts, after: NodeCounts) -> tuple[tuple[int, int], ...]:
    """Return the fields that differ, and by how much; cached, as many nodes change alike."""
    differences = [new - old for old, new in zip(before, after, strict=True)]
    return tuple((index, value) for index, value in enumerate(differences) if value)


@lru_cache(maxsize=1024)
def _parts(counts: NodeCounts) -> tuple[tuple[int, int], ...]:
    """Return the fields that are not zero; cached, as few different counts exist."""
    return tuple((index, int(value)) for index, value in enumerate(counts) if value)
