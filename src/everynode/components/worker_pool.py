"""Worker pool: handles the items of a queue, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from everynode.components.guard import log_error

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Handles queued items with at most `max_workers` tasks, started when there is work for them.

    Items that are put before `run` is called wait for it.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]], *, max_workers: int) -> None:
        self._handle = handle
        self._max_workers = max_workers
        self._queue: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._group: asyncio.TaskGroup | None = None
        self._workers = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, item: T) -> None:
        """Queue an item."""
        self._queue.append(item)
        if self._idle:
            waiting = self._idle.popleft()
            if not waiting.done():
                waiting.set_result(None)
        elif self._group is not None and self._workers < self._max_workers:
            self._start_worker(self._group)

    async def run(self) -> None:
        """Handle items until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(self._queue), self._max_workers)):
                self._start_worker(group)
            self._group = group
            await asyncio.get_running_loop().create_future()

    def _start_worker(self, group: asyncio.TaskGroup) -> None:
        self._workers += 1
        group.create_task(self._worker())

    async def _worker(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._queue:
                try:
                    await self._handle(self._queue.popleft())
                except Exception as error:
                    log_error(error)
            waiting = loop.create_future()
            self._idle.append(waiting)
            await waiting
