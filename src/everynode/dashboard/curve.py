"""Curve: nodes updated and down over time, and the expected end. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.times import seconds
from everynode.dashboard.model import Point
from everynode.inspect.evaluate import Evaluation
from everynode.inspect.fleet import FleetView, RolloutState

MAX_POINTS: Final = 600
_FEW_POINTS: Final = 60
_POINT_SECONDS: Final = 5.0  # between two points of a long history: all of it is sent each time
_MAX_PAST_POINTS: Final = 200  # points of the time before the first viewer came


def add_point(history: list[Point], point: Point) -> None:
    """Note how many nodes are updated and down; the history is thinned, never longer than 600."""
    pause = 1.0 if len(history) < _FEW_POINTS else _POINT_SECONDS
    if history and (history[-1][1:] == point[1:] or point[0] - history[-1][0] < pause):
        return
    history.append(point)
    if len(history) > MAX_POINTS:
        del history[1:MAX_POINTS:2]


def point_of(fleet: FleetView, now: float) -> Point:
    """Return what the chart shows of this moment."""
    counts = fleet.counts
    return (int(now), counts.updated, max(0, counts.desired - counts.available))


def past(evaluation: Evaluation, now: float) -> list[Point]:
    """Return how the rollout went before it was viewed, as far as the pods of the target tell it.

    How many nodes were down at a time is not known.
    """
    fleet, plan = evaluation.fleet, evaluation.plan
    began = fleet.started
    if began is None or fleet.state is RolloutState.COMPLETE:
        return []
    times = []
    for here in evaluation.pods.values():
        for pod in here:
            ready = pod.condition(keys.READY)
            if ready is not None and ready.status == "True" and plan.is_at_target(pod):
                moment = seconds(ready.last_transition_time)
                if moment is not None and moment <= now:
                    times.append(max(began, moment))
    points: list[Point] = [(int(began), 0, None)]
    step = max(1, len(times) // _MAX_PAST_POINTS)
    for count, moment in enumerate(sorted(times), 1):
        if count % step == 0 or count == len(times):
            points.append((int(moment), count, None))
    return _last_of_each_second(points)


def _last_of_each_second(points: Iterable[Point]) -> list[Point]:
    return list({point[0]: point for point in points}.values())


class ExpectedEnd(msgspec.Struct, frozen=True):
    """The end that a rollout was expected to reach: its target, and the line to there."""

    target: str
    end: int
    promised: int
    since: int  # nodes that were updated when the first forecast was made
    line: tuple[tuple[float, int], ...]


def keep_forecast(known: ExpectedEnd | None, fleet: FleetView, now: float) -> ExpectedEnd | None:
    """Return the forecast of a rollout, which is kept beside what happens.

    The pace of one batch of nodes says little: the forecast stays from the next batch on. It is
    made anew when the target, the budget or the number of nodes to update changes.
    """
    updated, promised = fleet.counts.updated, fleet.budget.promised
    end = fleet.counts.desired - fleet.counts.held
    moves = fleet.state is RolloutState.PROGRESSING
    since = updated
    if (
        known is not None
        and (known.target, known.promised) == (fleet.target, promised)
        and (known.end == end or not moves)
    ):
        batch = known.line[0][1] - known.since
        if not moves or fleet.seconds_left is None or batch >= promised:
            return known
        since = known.since
    if fleet.seconds_left is None:
        return None
    line = ((int(now), updated), (int(now + fleet.seconds_left), end))
    return ExpectedEnd(fleet.target, end, promised, since, line)
