from __future__ import annotations

from everynode.controller.wallclock import WallClock
from tests.support.scripted_server import ManualClock


async def test_a_clock_that_runs_is_not_set_back() -> None:
    clock = ManualClock()
    wall = WallClock(clock)
    await clock.advance(5000)
    assert wall.set_back() == 0


async def test_a_clock_that_is_set_back_is_noticed_once_and_by_how_much() -> None:
    clock = ManualClock()
    wall = WallClock(clock)
    await clock.advance(100)
    clock.jump(-3600)
    assert wall.set_back() == 3600
    assert wall.set_back() == 0


async def test_a_clock_that_is_set_forward_and_right_again_was_set_back() -> None:
    clock = ManualClock()
    wall = WallClock(clock)
    clock.jump(60)
    assert wall.set_back() == -60
    clock.jump(-60)
    assert wall.set_back() == 60


async def test_small_steps_add_up() -> None:
    clock = ManualClock()
    wall = WallClock(clock)
    lost = []
    for _ in range(4):
        clock.jump(-0.4)
        lost.append(wall.set_back())
    assert sum(lost) > 1
