"""Which workloads need a look, each at most once: now, soon, or at a given time."""

from __future__ import annotations

import asyncio
import heapq
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
        self._consumer: asyncio.Future[None] | None = None  # while it sleeps
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf

    def __len__(self) -> int:
        return len(self._due.keys() | self._soon.keys())

    def add(self, key: str) -> None:
        """The key needs a look now."""
        if key not in self._due:
            self._due[key] = None
            if self._consumer is not None and not self._consumer.done():
                self._consumer.set_result(None)

    def add_soon(self, key: str) -> None:
        """The key needs a look, alone or with what else happens to it in a moment."""
        if key not in self._soon and key not in self._due:
            self._soon[key] = when = self._clock.now() + SOON
            self._ring_at(when)

    def add_at(self, key: str, when: float) -> None:
        """The key needs a look at that time, or earlier if asked so before."""
        known = self._wake_at.get(key)
        if known is None or when < known:
            self._wake_at[key] = when
            heapq.heappush(self._later, (when, key))
            if len(self._later) > 2 * len(self._wake_at) + _SPARE:
                self._tidy()
            self._ring_at(when)

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
        self._move_due()
        while not self._due:
            await self._sleep()
        key, _ = self._due.popitem(last=False)
        self._soon.pop(key, None)
        return key

    async def _sleep(self) -> None:
        """Wait until a key is due; the timer is kept, whoever is due before it rings."""
        self._consumer = asyncio.get_running_loop().create_future()
        self._ring_at(self._next_time())
        try:
            await self._consumer
        except BaseException:
            self._stop_timer()
            raise
        finally:
            self._consumer = None

    def _next_time(self) -> float:
        """When the next key is due by itself."""
        later = self._later[0][0] if self._later else inf
        return min(later, next(iter(self._soon.values()))) if self._soon else later

    def _ring_at(self, when: float) -> None:
        """Let the timer ring at that time, if it would ring later and somebody waits for it."""
        if when < self._rings_at and self._consumer is not None:
            self._stop_timer()
            self._rings_at = when
            delay = max(0.0, when - self._clock.now()) + _TICK
            self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, inf
        self._move_due()
        self._ring_at(self._next_time())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = None, inf

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
