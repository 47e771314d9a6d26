"""Cutting short what a task is doing, without a second task to do it in."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Alarm:
    """Lets somebody else end what a task does inside `with alarm:`; it then goes on after it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._rung = False

    def ring(self) -> None:
        """End what is being done, if anything is."""
        if self._task is not None and not self._rung:
            self._rung = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._task, self._rung = asyncio.current_task(), False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        if not self._rung or task is None:
            return False
        # Whoever else has cancelled the task means all of it, and not just this.
        return task.uncancel() == 0 and kind is asyncio.CancelledError
