"""Cutting short what a task is doing, without a second task to do it in."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class Alarm:
    """Lets somebody else end the work of a task, which then goes on with something else."""

    def __init__(self) -> None:
        self._working: asyncio.Task[Any] | None = None
        self._rung = False

    def ring(self) -> None:
        """End the work, if there is any."""
        if self._working is not None and not self._rung:
            self._rung = True
            self._working.cancel()

    async def unless_rung(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Do the work; None where the alarm has ended it."""
        task = self._working = asyncio.current_task()
        self._rung = False
        try:
            return await work
        except asyncio.CancelledError:
            # Whoever else cancels the task means all of it, and not just this work.
            if not self._rung or task is None or task.uncancel():
                raise
            return None
        finally:
            self._working = None
