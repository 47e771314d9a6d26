"""Interrupts: which awaits they end, and which they leave alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from everynode.kube.watch.interrupt import Interrupt, TimeLimit
from tests.support.scripted_server import ManualClock


async def _forever() -> None:
    await asyncio.get_running_loop().create_future()


def soon(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(call)


async def test_an_interrupt_ends_the_block_but_not_the_task() -> None:
    alarm = Interrupt()
    soon(alarm.trigger)
    with alarm:
        await _forever()
    await asyncio.sleep(0)  # nothing is left of the cancellation
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_an_interrupt_can_be_used_again_for_the_next_block() -> None:
    alarm = Interrupt()
    for _ in range(2):
        soon(alarm.trigger)
        with alarm:
            await _forever()


async def test_an_interrupt_outside_a_block_does_nothing() -> None:
    alarm = Interrupt()
    alarm.trigger()
    with alarm:
        await asyncio.sleep(0)
    alarm.trigger()
    await asyncio.sleep(0)


async def test_failures_pass_through() -> None:
    with pytest.raises(ValueError, match="no"), Interrupt():
        raise ValueError("no")


async def test_failure_on_the_way_out_passes_and_leaves_no_cancellation() -> None:
    alarm = Interrupt()

    async def work() -> None:
        with alarm:
            try:
                await _forever()
            finally:
                raise ValueError("no")

    soon(alarm.trigger)
    with pytest.raises(ValueError, match="no"):
        await work()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancelled_task_ends_even_if_it_is_interrupted_as_well() -> None:
    alarm = Interrupt()

    async def work() -> None:
        with alarm:
            await _forever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    alarm.trigger()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_inner_interrupt_does_not_swallow_an_outer_one() -> None:
    outer, inner = Interrupt(), Interrupt()
    went_on = []

    async def work() -> None:
        with outer:
            with inner:
                await _forever()
            went_on.append(True)

    soon(outer.trigger)
    await work()
    assert not went_on
    soon(inner.trigger)
    await work()
    assert went_on


async def test_two_interrupts_at_once_end_the_outer_block() -> None:
    outer, inner = Interrupt(), Interrupt()
    soon(inner.trigger)
    soon(outer.trigger)
    with outer:
        with inner:
            await _forever()
        raise AssertionError("it went on")


async def test_a_time_limit_ends_what_takes_longer_and_nothing_else() -> None:
    clock, done = ManualClock(), list[str]()

    async def work() -> None:
        with TimeLimit(clock, 5):
            await clock.sleep(4)
            done.append("short")
        with TimeLimit(clock, 5):
            await clock.sleep(6)
            done.append("long")
        done.append("after")

    working = asyncio.ensure_future(work())
    await clock.advance(20)
    assert done == ["short", "after"]
    await working


async def test_a_cancellation_from_outside_passes_through_a_time_limit() -> None:
    async def work() -> None:
        with TimeLimit(ManualClock(), 5):
            await asyncio.Event().wait()

    working = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
