"""Timing of pods: how long they stop and start, and how long nodes wait for the controller."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from everynode.api.objects import Pod
from everynode.decide.node.availability import is_ready


@dataclass(slots=True)
class Mean:
    """The mean of many durations."""

    total: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.total += seconds
        self.count += 1

    @property
    def seconds(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(slots=True)
class PodTiming:
    """Times of every pod as a watch tells them.

    Stopping is from the first sight of a deletion to the pod's end, starting from the first sight
    of a pod to its Ready; neither is the controller's doing. The gap between them is.
    """

    stopping: Mean = field(default_factory=Mean)
    starting: Mean = field(default_factory=Mean)
    gap: Mean = field(default_factory=Mean)
    created_within: float = 0.0  # seconds until the last pod so far was first seen
    _began: float = 0.0
    _deleted: dict[str, float] = field(default_factory=dict)
    _created: dict[str, float] = field(default_factory=dict)
    _emptied: dict[str, float] = field(default_factory=dict)  # by node

    def begin(self) -> None:
        """Measure anew."""
        self.stopping, self.starting, self.gap = Mean(), Mean(), Mean()
        self.created_within, self._began = 0.0, time.monotonic()
        self._deleted.clear()
        self._created.clear()
        self._emptied.clear()

    def pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        now = time.monotonic()
        if before is not None and (after is None or after.uid != before.uid):
            deleted = self._deleted.pop(before.uid, None)
            if deleted is not None:
                self.stopping.add(now - deleted)
                self._emptied[before.node] = now
        if after is None:
            return
        if before is None or before.uid != after.uid:
            self._created[after.uid] = now
            self.created_within = now - self._began
            emptied = self._emptied.pop(after.node, None)
            if emptied is not None:
                self.gap.add(now - emptied)
        if after.terminating:
            self._deleted.setdefault(after.uid, now)
        elif after.uid in self._created and is_ready(after):
            self.starting.add(now - self._created.pop(after.uid))
