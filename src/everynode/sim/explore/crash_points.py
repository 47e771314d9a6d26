"""Crash points: the controller is killed at each request of a plan, in each possible way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from everynode.sim.explore.campaign import Outcome, outcome_of, play_safely
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World, play

# A read changes nothing, so it does not matter at which point of it the process crashes.
_WAYS_OF_READS: Final = ("crash-before",)
_WAYS_OF_WRITES: Final = ("crash-before", "crash-after", "crash-answered")
OFFSETS: Final = 4  # commits after a restart from which on the watches may lag
_LAG_SECONDS: Final = 10.0  # seconds for which the watches then lag
_JUST_BEFORE: Final = 1e-4


class UnsoundPlan(ValueError):
    """A plan breaks a promise, or does not settle, without any crash."""


def crash_points(plan: Plan) -> list[Action]:
    """Every crash that a plan offers; raises UnsoundPlan if the plan fails without one."""
    result, world = play(plan)
    if not result.kept:
        raise UnsoundPlan(f"{plan.name} without a crash: {result.violations[0].message}")
    return [
        Action(what, at_request=number)
        for number, method in enumerate(world.faults.requests_made)
        for what in (_WAYS_OF_READS if method == "GET" else _WAYS_OF_WRITES)
    ]


def with_point(plan: Plan, *points: Action) -> Plan:
    """The plan with crashes or other actions added."""
    names = [plan.name, *(point.describe() for point in points)]
    return msgspec.structs.replace(plan, actions=(*plan.actions, *points), name=", ".join(names))


def play_point(task: tuple[Plan, Action]) -> list[Outcome]:
    """Play the plan with one crash."""
    plan, point = task
    return [outcome_of(with_point(plan, point))]


def play_stale_point(task: tuple[Plan, Action]) -> list[Outcome]:
    """Play the plan with one crash, then again with watches that lag from each later commit on."""
    plan, point = task
    crashed = with_point(plan, point)
    try:
        result, world = play(crashed)
    except Exception:
        return [Outcome(play_safely(crashed), crashed)]
    alone = Outcome(result) if result.kept else Outcome(result, crashed)
    return [alone, *(outcome_of(with_point(plan, point, lag)) for lag in _lags(world))]


def _lags(world: World) -> Iterator[Action]:
    """One lag of all watches for each of the first commits after the crash."""
    crashed_at = next((time for time, text in world.notes if " dies: " in text), None)
    if crashed_at is None:
        return
    quiet_at = world.plan.quiet_at
    later = [each.time for each in world.record.commits if crashed_at < each.time < quiet_at]
    for time in sorted({round(each, 3) for each in later})[:OFFSETS]:
        yield Action("hold-watch", at=time - _JUST_BEFORE, seconds=_LAG_SECONDS)
