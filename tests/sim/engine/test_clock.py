from __future__ import annotations

from everynode.sim.engine.clock import EPOCH, SimClock
from everynode.sim.engine.loop import SimLoop, run


def test_a_frozen_process_wakes_when_it_goes_on() -> None:
    loop = SimLoop()
    clock = SimClock(loop, 1)

    async def live() -> tuple[float, float]:
        clock.freeze(30.0)
        await clock.sleep(1.0)
        woken = loop.time()
        await clock.sleep(1.0)
        return woken, loop.time()

    assert run(live(), loop=loop) == (30.0, 31.0)


def test_what_is_on_its_way_arrives_while_the_process_is_frozen() -> None:
    loop = SimLoop()
    clock = SimClock(loop, 1)

    async def live() -> float:
        clock.freeze(30.0)
        await clock.pause(1.0)
        return loop.time()

    assert run(live(), loop=loop) == 1.0


def test_a_clock_that_jumped_is_set_right() -> None:
    loop = SimLoop()
    clock = SimClock(loop, 1)
    clock.jump(3600.0)
    assert (clock.now(), clock.monotonic()) == (EPOCH + 3600.0, 0.0)
    clock.set_right()
    assert clock.now() == EPOCH
    loop.close()


def test_a_clock_that_drifts_runs_at_its_own_speed_until_it_is_set_right() -> None:
    loop = SimLoop()
    clock = SimClock(loop, 1)

    async def live() -> tuple[float, float]:
        clock.drift(2.0)
        await clock.sleep(10.0)
        drifted = clock.now() - EPOCH
        clock.set_right()
        return drifted, clock.now() - EPOCH

    assert run(live(), loop=loop) == (20.0, 10.0)
