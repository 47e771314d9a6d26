"""Every crash point of a plan: a controller dies at each request it makes, in each possible way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from everynode.sim.campaign import Outcome, judge, outcome_of
from everynode.sim.plan import Happening, Plan
from everynode.sim.world import World, play

# A read changes nothing, so that it does not matter when within it the process dies.
_OF_READS: Final = ("crash-before",)
_OF_WRITES: Final = ("crash-before", "crash-after", "crash-answered")
OFFSETS: Final = 4  # commits after a restart from which on the watches may lag
_LAG: Final = 10.0  # seconds for which they then do
_JUST_BEFORE: Final = 1e-4


class Unsound(ValueError):
    """A plan that breaks a promise, or does not settle, without any crash."""


def crash_points(plan: Plan) -> list[Happening]:
    """Every way to die in the course of a plan; raises Unsound if it cannot stand by itself."""
    result, world = play(plan)
    if not result.kept:
        raise Unsound(f"{plan.name} without a crash: {result.breaches[0].message}")
    return [
        Happening(what, call=number)
        for number, method in enumerate(world.sky.called)
        for what in (_OF_READS if method == "GET" else _OF_WRITES)
    ]


def with_point(plan: Plan, *points: Happening) -> Plan:
    """The plan with a crash, or whatever else, in it."""
    names = [plan.name, *(point.describe() for point in points)]
    return msgspec.structs.replace(
        plan, happenings=(*plan.happenings, *points), name=", ".join(names)
    )


def play_point(task: tuple[Plan, Happening]) -> list[Outcome]:
    """One crash."""
    plan, point = task
    return [outcome_of(with_point(plan, point))]


def play_stale_point(task: tuple[Plan, Happening]) -> list[Outcome]:
    """One crash, and then again with watches that lag behind from each commit after it on."""
    plan, point = task
    crashed = with_point(plan, point)
    try:
        result, world = play(crashed)
    except Exception:
        return [Outcome(judge(crashed), crashed)]
    alone = Outcome(result) if result.kept else Outcome(result, crashed)
    return [alone, *(outcome_of(with_point(plan, point, lag)) for lag in _lags(world))]


def _lags(world: World) -> Iterator[Happening]:
    """From each of the first commits after the crash on, nothing is told for a while."""
    crashed_at = next((time for time, text in world.notes if " dies: " in text), None)
    if crashed_at is None:
        return
    quiet_at = world.plan.quiet_at
    later = [each.time for each in world.record.commits if crashed_at < each.time < quiet_at]
    for time in sorted({round(each, 3) for each in later})[:OFFSETS]:
        yield Happening("hold-watch", at=time - _JUST_BEFORE, seconds=_LAG)
