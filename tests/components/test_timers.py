"""Timers fire in the order of their times, and may set further ones."""

from __future__ import annotations

import asyncio
from functools import partial

from everynode.components.timers import Timers
from tests.support.components_cluster import LoopClock, virtual


@virtual
async def test_calls_come_in_the_order_of_their_times_and_equal_ones_as_they_were_asked() -> None:
    timers, calls = Timers(LoopClock()), list[str]()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(timers.run())
        for when, name in ((3.0, "c"), (1.0, "a"), (3.0, "d"), (2.0, "b")):
            timers.call_at(when, partial(calls.append, name))
        await asyncio.sleep(2.5)
        assert calls == ["a", "b"]
        await asyncio.sleep(1)
        assert calls == ["a", "b", "c", "d"]
        running.cancel()


@virtual
async def test_a_sooner_call_is_not_kept_waiting_by_a_later_one() -> None:
    timers, calls = Timers(LoopClock()), list[float]()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(timers.run())
        timers.call_later(100, lambda: calls.append(timers.now()))
        await asyncio.sleep(1)
        timers.call_later(1, lambda: calls.append(timers.now()))
        await asyncio.sleep(200)
        assert calls == [2.0, 100.0]
        running.cancel()


@virtual
async def test_a_call_may_ask_for_another() -> None:
    timers, calls = Timers(LoopClock()), list[str]()

    def again() -> None:
        calls.append("first")
        timers.call_later(0, lambda: calls.append("second"))

    async with asyncio.TaskGroup() as group:
        running = group.create_task(timers.run())
        timers.call_later(1, again)
        await asyncio.sleep(2)
        assert calls == ["first", "second"]
        running.cancel()


@virtual
async def test_a_callback_that_reschedules_itself_does_not_starve_others() -> None:
    timers, calls = Timers(LoopClock()), list[float]()

    def again() -> None:
        calls.append(timers.now())
        assert len(calls) < 100
        timers.call_later(0, again)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(timers.run())
        timers.call_later(0, again)
        for _ in range(10):
            await asyncio.sleep(0)
        running.cancel()
