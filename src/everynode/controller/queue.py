"""Which workloads need a look, each at most once: now, soon, or at a given time."""

from __future__ import annotations

import asyncio
import heapq
from math import inf
from typing import Final

from everynode.clock import Clock

# Pods that were let go together arrive together, within moments: one look serves them all.
SHORTLY: Final = 0.005
# How long what frees nobody to act may wait, so that one look serves many changes.
SOON: Final = 0.2
# Loops count in milliseconds: a timer that rings a moment too early would ring again and again.
_TICK: Final = 0.001
# A timer does not hear that the clock is set, which may be wrong for a moment just when it begins.
_LONGEST: Final = 60.0
_SPARE: Final = 64  # superseded times that are not worth tidying up


class Queue:
    """A queue of keys: a key waits in it once however often it is added.

    A key that comes out is forgotten with all times asked for: whoever looks at it knows best when
    to look again. Bounded by the number of keys there are. One consumer at a time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at: dict[str, float] = {}  # the earliest time asked for, per key
        self._times: list[tuple[float, str]] = []  # a heap of them, and of superseded ones
        self._consumer: asyncio.Future[None] | None = None  # while it sleeps
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf

    def __len__(self) -> int:
        """How many keys need a look now or soon."""
        soon = self._clock.now() + SOON
        return sum([when <= soon for when in self._due_at.values()])

    def add(self, key: str) -> None:
        """The key needs a look now."""
        self.add_at(key, self._clock.now())

    def add_shortly(self, key: str) -> None:
        """The key needs a look, and what happens beside this will be seen at once, too."""
        self.add_at(key, self._clock.now() + SHORTLY)

    def add_soon(self, key: str) -> None:
        """The key needs a look, alone or with what else happens to it in a moment."""
        self.add_at(key, self._clock.now() + SOON)

    def add_at(self, key: str, when: float) -> None:
        """The key needs a look at that time, or earlier if asked so before."""
        known = self._due_at.get(key)
        if known is not None and known <= when:
            return
        self._due_at[key] = when
        heapq.heappush(self._times, (when, key))
        if len(self._times) > 2 * len(self._due_at) + _SPARE:
            self._tidy()
        if self._consumer is not None and when < self._rings_at:
            self._ring_at(when)

    def _tidy(self) -> None:
        """Drop the times that earlier ones have superseded; they would stay until they come."""
        self._times = [(when, key) for key, when in self._due_at.items()]
        heapq.heapify(self._times)

    def discard(self, key: str) -> None:
        """Nobody needs this key any more."""
        self._due_at.pop(key, None)

    async def get(self) -> str:
        """Wait for the next key that is due, oldest first."""
        while self._next_time() > self._clock.now():
            await self._sleep()
        _, key = heapq.heappop(self._times)
        del self._due_at[key]
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
        """When the next key is due."""
        times = self._times
        while times and self._due_at.get(times[0][1]) != times[0][0]:
            heapq.heappop(times)  # superseded, or not needed any more
        return times[0][0] if times else inf

    def _ring_at(self, when: float) -> None:
        """Wake the consumer at that time, unless the timer rings before."""
        assert self._consumer is not None
        now = self._clock.now()
        if when <= now:
            if not self._consumer.done():
                self._consumer.set_result(None)
        elif when < self._rings_at:
            self._stop_timer()
            delay = min(when - now, _LONGEST)
            self._rings_at = now + delay
            self._timer = asyncio.get_running_loop().call_later(delay + _TICK, self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, inf
        if self._consumer is not None:
            self._ring_at(self._next_time())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = None, inf
