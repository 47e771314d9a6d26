"""The crew: everything is handled, in order, and never too much of it at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everynode.cluster.machinery.crew import Crew


class Yard:
    """Handles numbers, each when it is let through."""

    def __init__(self, *, most: int = 2) -> None:
        self.begun: list[int] = []
        self.gate = asyncio.Semaphore(0)
        self.crew = Crew(self._handle, most=most)

    async def _handle(self, item: int) -> None:
        self.begun.append(item)
        await self.gate.acquire()

    async def pass_through(self, count: int) -> None:
        for _ in range(count):
            self.gate.release()
        await rest()


async def rest() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def working(yard: Yard) -> AsyncIterator[None]:
    task = asyncio.create_task(yard.crew.run())
    await rest()
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_more_is_handled_at_once_than_allowed() -> None:
    yard = Yard(most=2)
    async with working(yard):
        for item in range(4):
            yard.crew.put(item)
        await rest()
        assert yard.begun == [0, 1]
        assert len(yard.crew) == 2
        await yard.pass_through(1)
        assert yard.begun == [0, 1, 2]
        await yard.pass_through(3)
        assert yard.begun == [0, 1, 2, 3]


async def test_what_came_before_the_crew_waits_for_it() -> None:
    yard = Yard(most=2)
    for item in range(3):
        yard.crew.put(item)
    async with working(yard):
        assert yard.begun == [0, 1]
        await yard.pass_through(3)
        assert yard.begun == [0, 1, 2]


async def test_idle_hands_take_what_comes_later() -> None:
    yard = Yard(most=2)
    async with working(yard):
        for item in range(10):
            yard.crew.put(item)
            await yard.pass_through(1)
        assert yard.begun == list(range(10))


async def test_whoever_waits_while_all_hands_are_full_is_not_forgotten() -> None:
    yard = Yard(most=1)
    async with working(yard):
        yard.crew.put(1)
        await yard.pass_through(1)
        yard.crew.put(2)  # wakes the idle one
        yard.crew.put(3)  # which is to see this one too
        await yard.pass_through(2)
        assert yard.begun == [1, 2, 3]


async def test_what_fails_ends_the_crew() -> None:
    async def handle(item: int) -> None:
        raise ValueError(item)

    crew = Crew(handle, most=2)
    crew.put(1)
    with pytest.raises(ExceptionGroup):
        await crew.run()
