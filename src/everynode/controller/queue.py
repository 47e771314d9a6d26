"""Which workloads need a look, each at most once: now, soon, or at a given time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict
from math import inf
from typing import Final

from everynode.clock import Clock

# How long what frees nobody to act may wait, so that one look serves many changes.
SOON: Final = 0.2
# Loops count in milliseconds: a timer that rings a moment too early would ring again and again.
_TICK: Final = 0.001
_SPARE: Final = 64  # superseded times that are not worth tidying up


class Queue:
    """A queue of keys: a key waits in it once however often it is added.

    Bounded by the number of keys there are. One consumer at a time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: OrderedDict[str, None] = OrderedDict()
        self._soon: OrderedDict[str, float] = OrderedDict()  # in the order of their times
        self._later: list[tuple[float, str]] = []
        self._wake_at: dict[str, float] = {}  # the earliest time asked for, per key
        self._changed = asyncio.Event()
        self._asleep_until = 0.0  # how long the consumer would sleep if nothing came

    def __len__(self) -> int:
        return len(self._due.keys() | self._soon.keys())

    def add(self, key: str) -> None:
        """The key needs a look now."""
        if key not in self._due:
            self._due[key] = None
            self._changed.set()

    def add_soon(self, key: str) -> None:
        """The key needs a look, alone or with what else happens to it in a moment."""
        if key not in self._soon and key not in self._due:
            self._soon[key] = when = self._clock.now() + SOON
            self._wake_by(when)

    def add_at(self, key: str, when: float) -> None:
        """The key needs a look at that time, or earlier if asked so before."""
        known = self._wake_at.get(key)
        if known is None or when < known:
            self._wake_at[key] = when
            heapq.heappush(self._later, (when, key))
            if len(self._later) > 2 * len(self._wake_at) + _SPARE:
                self._tidy()
            self._wake_by(when)

    def _tidy(self) -> None:
        """Drop the times that earlier ones have superseded; they would stay until they come."""
        self._later = [(when, key) for key, when in self._wake_at.items()]
        heapq.heapify(self._later)

    def discard(self, key: str) -> None:
        """Nobody needs this key any more."""
        self._due.pop(key, None)
        self._soon.pop(key, None)
        self._wake_at.pop(key, None)

    async def get(self) -> str:
        """Wait for the next key that is due, oldest first."""
        while True:
            self._move_due()
            if self._due:
                key, _ = self._due.popitem(last=False)
                self._soon.pop(key, None)
                return key
            self._changed.clear()
            self._asleep_until = self._next_time()
            await self._sleep(self._asleep_until - self._clock.now())

    async def _sleep(self, seconds: float) -> None:
        """Wait until something is due before its time, or for so long."""
        if seconds == inf:
            await self._changed.wait()
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(0.0, seconds) + _TICK, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    def _next_time(self) -> float:
        """When the next key is due by itself."""
        times = [when for when, _ in self._later[:1]]
        times += itertools.islice(self._soon.values(), 1)
        return min(times, default=inf)

    def _wake_by(self, when: float) -> None:
        if when < self._asleep_until:
            self._changed.set()

    def _move_due(self) -> None:
        now = self._clock.now()
        while self._soon and next(iter(self._soon.values())) <= now:
            self.add(self._soon.popitem(last=False)[0])
        while self._later and self._later[0][0] <= now:
            when, key = heapq.heappop(self._later)
            # An entry that a later call superseded is dropped when its turn comes.
            if self._wake_at.get(key) == when:
                del self._wake_at[key]
                self.add(key)
