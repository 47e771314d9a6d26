"""Timers: one heap of callbacks for all kubelets and controllers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from everynode.clock import Clock
from everynode.components.guard import log_error
from everynode.kube.watch.interrupt import Interrupt

NEVER: Final = float("inf")


class Timers:
    """Calls functions at their times, in order.

    A timer cannot be cancelled: the function called checks whether there is still work to do.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._sleeping_until = NEVER
        self._interrupt = Interrupt()
        self._not_empty = asyncio.Event()

    def now(self) -> float:
        """The monotonic time that timers use."""
        return self._clock.monotonic()

    def call_at(self, when: float, call: Callable[[], None]) -> None:
        """Call a function at that time, or as soon as possible after it."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, call))
        self._not_empty.set()
        if when < self._sleeping_until:
            self._interrupt.trigger()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after that many real seconds."""
        self.call_at(self.now() + seconds, call)

    async def run(self) -> None:
        """Call functions until cancelled."""
        while True:
            self._call_due()
            if not self._heap:
                self._not_empty.clear()
                await self._not_empty.wait()
                continue
            self._sleeping_until = self._heap[0][0]
            with self._interrupt:
                await self._clock.sleep(self._sleeping_until - self.now())

    def _call_due(self) -> None:
        # Timers that are set meanwhile wait for the next round, so that other tasks get a turn.
        now, last = self.now(), self._count
        while self._heap and self._heap[0][0] <= now and self._heap[0][1] <= last:
            _, _, call = heapq.heappop(self._heap)
            try:
                call()
            except Exception as error:
                log_error(error)
