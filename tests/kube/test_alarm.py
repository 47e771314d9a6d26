"""The alarm: what it ends, and what it leaves to others."""

from __future__ import annotations

import asyncio

import pytest

from everynode.kube.alarm import Alarm


async def _for_ever() -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


async def _at_once() -> str:
    return "done"


async def test_work_that_ends_by_itself_has_its_result() -> None:
    assert await Alarm().unless_rung(_at_once()) == "done"


async def test_rung_alarm_ends_the_work_but_not_the_task() -> None:
    alarm = Alarm()
    asyncio.get_running_loop().call_soon(alarm.ring)
    assert await alarm.unless_rung(_for_ever()) is None
    await asyncio.sleep(0)  # nothing is left of the cancellation
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_alarm_can_be_rung_again_for_the_next_work() -> None:
    alarm = Alarm()
    for _ in range(2):
        asyncio.get_running_loop().call_soon(alarm.ring)
        assert await alarm.unless_rung(_for_ever()) is None


async def test_ringing_while_nothing_is_done_does_nothing() -> None:
    alarm = Alarm()
    alarm.ring()
    assert await alarm.unless_rung(_at_once()) == "done"


async def test_cancelled_task_ends_even_if_its_alarm_rings_as_well() -> None:
    alarm = Alarm()
    task = asyncio.create_task(alarm.unless_rung(_for_ever()))
    await asyncio.sleep(0)
    alarm.ring()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_inner_alarm_leaves_the_ringing_of_an_outer_one_alone() -> None:
    outer, inner = Alarm(), Alarm()

    async def work() -> str:
        await inner.unless_rung(_for_ever())
        return "went on"

    asyncio.get_running_loop().call_soon(outer.ring)
    assert await outer.unless_rung(work()) is None
    asyncio.get_running_loop().call_soon(inner.ring)
    assert await outer.unless_rung(work()) == "went on"


async def test_two_alarms_that_ring_at_once_end_what_the_outer_one_guards() -> None:
    outer, inner = Alarm(), Alarm()

    def ring() -> None:
        inner.ring()
        outer.ring()

    async def work() -> str:
        await inner.unless_rung(_for_ever())
        return "went on"

    asyncio.get_running_loop().call_soon(ring)
    assert await outer.unless_rung(work()) is None
