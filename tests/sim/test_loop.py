from __future__ import annotations

import asyncio

import pytest

from everynode.sim.clock import Killed, SimClock
from everynode.sim.loop import SimLoop, Stuck, run


def test_waiting_a_day_takes_no_time() -> None:
    loop = SimLoop()

    async def wait() -> float:
        await asyncio.sleep(86400)
        return loop.time()

    assert run(wait(), loop=loop) == 86400


def test_callbacks_run_in_the_order_in_which_they_became_ready() -> None:
    async def order() -> list[int]:
        found: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(5):
            loop.call_soon(found.append, number)
        await asyncio.sleep(0.1)
        return found

    assert run(order()) == [0, 1, 2, 3, 4]


def _order_of_timers(seed: int) -> list[int]:
    async def order() -> list[int]:
        found: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(8):
            loop.call_at(1.0, found.append, number)
        await asyncio.sleep(2)
        return found

    return run(order(), seed=seed)


def test_timers_of_one_instant_fire_in_an_order_drawn_from_the_seed() -> None:
    assert _order_of_timers(1) == _order_of_timers(1)
    assert len({tuple(_order_of_timers(seed)) for seed in range(10)}) > 1


def test_the_shortest_sleep_lets_time_pass() -> None:
    loop = SimLoop()

    async def wait() -> float:
        await asyncio.sleep(540)
        await asyncio.sleep(1e-15)
        return loop.time()

    assert run(wait(), loop=loop) > 540


def test_waiting_for_nobody_is_noticed() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run(wait())


def test_timeouts_of_asyncio_go_by_virtual_time() -> None:
    async def wait() -> None:
        async with asyncio.timeout(5):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(wait())


def test_a_killed_process_sleeps_no_more() -> None:
    loop = SimLoop()
    clock = SimClock(loop, 1)

    async def live() -> float:
        loop.call_later(1.0, clock.kill)
        with pytest.raises(Killed):
            await clock.sleep(100)
        with pytest.raises(Killed):
            await clock.sleep(100)
        return loop.time()

    assert run(live(), loop=loop) == 1.0


def test_ids_come_from_the_seed() -> None:
    loop = SimLoop()
    assert SimClock(loop, 1).uid() == SimClock(loop, 1).uid() != SimClock(loop, 2).uid()
    assert len(SimClock(loop, 1).name_suffix()) == 5
    loop.close()
