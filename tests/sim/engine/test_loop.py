from __future__ import annotations

import asyncio
from itertools import count

import pytest

from everynode.sim.engine.clock import Killed, SimClock
from everynode.sim.engine.loop import Deadlock, Livelock, SimLoop, run


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


def test_a_loop_without_pending_events_is_reported() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(wait())


class ShortLoop(SimLoop):
    MAX_CALLBACKS_AT_ONE_TIME = MAX_STANDSTILLS = 1000


async def spin() -> None:
    for _ in count():
        await asyncio.sleep(0)


def test_a_task_that_lets_no_time_pass_is_named() -> None:
    with pytest.raises(Livelock, match=r"something spins at 0\.000 s: spin$"):
        run(spin(), loop=ShortLoop())


def test_a_timer_that_lets_no_time_pass_is_named() -> None:
    loop = ShortLoop()

    def ring() -> None:
        loop.call_later(0, ring)

    async def wait() -> None:
        loop.call_later(5, ring)
        await asyncio.sleep(10)

    with pytest.raises(Livelock, match=r"something spins at 5\.000 s: .*ring;"):
        run(wait(), loop=loop)


def test_what_happens_often_but_in_its_time_is_no_spinning() -> None:
    async def tick() -> None:
        for _ in range(5000):
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)

    run(tick(), loop=ShortLoop())


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
