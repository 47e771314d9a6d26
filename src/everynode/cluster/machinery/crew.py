"""Working off a queue, a bounded number of things at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Crew(Generic[T]):
    """Handles what is put before it with as many hands as that needs, hired when they do.

    What comes before the crew runs waits for it.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]], *, most: int) -> None:
        self._handle = handle
        self._most = most
        self._queue: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._group: asyncio.TaskGroup | None = None
        self._hands = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, item: T) -> None:
        """Have something handled when its turn comes."""
        self._queue.append(item)
        if self._idle:
            waiting = self._idle.popleft()
            if not waiting.done():
                waiting.set_result(None)
        elif self._group is not None and self._hands < self._most:
            self._hire(self._group)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(self._queue), self._most)):
                self._hire(group)
            self._group = group
            await asyncio.get_running_loop().create_future()

    def _hire(self, group: asyncio.TaskGroup) -> None:
        self._hands += 1
        group.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._queue:
                await self._handle(self._queue.popleft())
            waiting = loop.create_future()
            self._idle.append(waiting)
            await waiting
