"""The worker pool handles every item in order, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everynode.components.worker_pool import WorkerPool


class Yard:
    """Handles numbers, each when it is let through."""

    def __init__(self, *, max_workers: int = 2) -> None:
        self.begun: list[int] = []
        self.gate = asyncio.Semaphore(0)
        self.pool = WorkerPool(self._handle, max_workers=max_workers)

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
    task = asyncio.create_task(yard.pool.run())
    await rest()
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_more_is_handled_at_once_than_allowed() -> None:
    yard = Yard(max_workers=2)
    async with working(yard):
        for item in range(4):
            yard.pool.put(item)
        await rest()
        assert yard.begun == [0, 1]
        assert len(yard.pool) == 2
        await yard.pass_through(1)
        assert yard.begun == [0, 1, 2]
        await yard.pass_through(3)
        assert yard.begun == [0, 1, 2, 3]


async def test_work_added_before_the_pool_starts_waits_for_it() -> None:
    yard = Yard(max_workers=2)
    for item in range(3):
        yard.pool.put(item)
    async with working(yard):
        assert yard.begun == [0, 1]
        await yard.pass_through(3)
        assert yard.begun == [0, 1, 2]


async def test_idle_hands_take_what_comes_later() -> None:
    yard = Yard(max_workers=2)
    async with working(yard):
        for item in range(10):
            yard.pool.put(item)
            await yard.pass_through(1)
        assert yard.begun == list(range(10))


async def test_work_that_waits_for_a_worker_is_not_forgotten() -> None:
    yard = Yard(max_workers=1)
    async with working(yard):
        yard.pool.put(1)
        await yard.pass_through(1)
        yard.pool.put(2)  # wakes the idle one
        yard.pool.put(3)  # which is to see this one too
        await yard.pass_through(2)
        assert yard.begun == [1, 2, 3]


async def test_what_fails_is_reported_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handled = asyncio.Event()

    async def handle(item: int) -> None:
        if item == 1:
            raise ValueError(item)
        handled.set()

    pool = WorkerPool(handle, max_workers=1)
    pool.put(1)
    pool.put(2)
    work = asyncio.create_task(pool.run())
    await asyncio.wait_for(handled.wait(), 60)
    work.cancel()
    assert "ValueError: 1" in caplog.text
