"""Interrupt: ends an await of another task early, without a second task to run the await in."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from everynode.clock import Clock


class Interrupt:
    """Lets another task end what a task awaits inside `with`; the task goes on after the block."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._triggered = False

    def trigger(self) -> None:
        """End the block, if a task is inside it."""
        if self._task is not None and not self._triggered:
            self._triggered = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._task, self._triggered = asyncio.current_task(), False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        if not self._triggered or task is None:
            return False
        # A second cancellation came from elsewhere and is meant for the whole task.
        return task.uncancel() == 0 and kind is asyncio.CancelledError


class TimeLimit(Interrupt):
    """Ends the `with` block of a task after some seconds; the task goes on after the block."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds
        self._guard: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        super().__enter__()
        self._guard = asyncio.create_task(self._trigger_late())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._guard is not None:
            self._guard.cancel()
        return super().__exit__(kind, error, trace)

    async def _trigger_late(self) -> None:
        await self._clock.sleep(self._seconds)
        self.trigger()
