"""What has to happen later: one heap of times for everything that is simulated."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from everynode.clock import Clock
from everynode.kube.alarm import Alarm

NEVER: Final = float("inf")


class Timers:
    """Calls functions at their times, in order; there is no cancelling, callers look again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._sleeping_until = NEVER
        self._alarm = Alarm()
        self._some = asyncio.Event()

    def now(self) -> float:
        """The time that timers go by."""
        return self._clock.monotonic()

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have a function called at that time, or as soon as possible after it."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, call))
        self._some.set()
        if when < self._sleeping_until:
            self._alarm.ring()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Have a function called after that many real seconds."""
        self.at(self.now() + seconds, call)

    async def run(self) -> None:
        """Keep time until cancelled."""
        while True:
            self._call_due()
            if not self._heap:
                self._some.clear()
                await self._some.wait()
                continue
            self._sleeping_until = self._heap[0][0]
            with self._alarm:
                await self._clock.sleep(self._sleeping_until - self.now())

    def _call_due(self) -> None:
        # What is asked for meanwhile waits until others had their turn, whatever asks for it.
        now, last = self.now(), self._count
        while self._heap and self._heap[0][0] <= now and self._heap[0][1] <= last:
            heapq.heappop(self._heap)[2]()
