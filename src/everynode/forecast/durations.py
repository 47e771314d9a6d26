"""Durations: how long the pods of a DaemonSet took to pull, to start and to stop, by their times.

Pure functions of the pods as they are stored. What the pods do not tell is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import TimeError, parse_time, seconds
from everynode.decide.inplace.state import read_state

Object = dict[str, Any]

# Assumed where the pods do not tell; as in `everynode simulate`.
PULL: Final = 5.0
START: Final = 20.0
STOP: Final = 10.0
_FEWEST_GAPS: Final = 3
_STOP_TOLERANCE: Final = 2.0  # seconds by which a pod may outlive its grace period
_MAX_START: Final = 3600.0  # a pod that became Ready later than that was waited for, not started


class Duration(msgspec.Struct, frozen=True):
    """A number of seconds, and where it comes from."""

    seconds: float
    source: str
    measured: bool = False  # at the pods, as opposed to assumed or given


class Durations(msgspec.Struct, frozen=True):
    """How long a pod of the DaemonSet takes."""

    pull: Duration  # from its creation to its running containers
    start: Duration  # from there to Ready
    stop: Duration  # from its deletion until it is gone


class _Times(msgspec.Struct, frozen=True):
    """When a pod was created (or changed in place), ran, and became Ready."""

    created: float
    running: float
    ready: float
    in_place: bool  # its containers were changed: until they ran, others had to stop


def estimate_durations(
    pods: Sequence[Pod], *, at_once: int, min_ready_seconds: int, grace: float
) -> Durations:
    """Return the means over the pods that are Ready and have not restarted.

    `at_once` is the maxUnavailable of the update that made them, 0 if it was none that takes pods
    first; `grace` is their termination grace period.
    """
    times = [found for pod in pods if (found := _times(pod)) is not None]
    stop = _stop(pods, at_once=at_once, min_ready_seconds=min_ready_seconds, grace=grace)
    if not times:
        none = "assumed: no pod is Ready that has not restarted"
        pull, start = Duration(PULL, none), Duration(START, none)
    else:
        source = f"the mean of {len(times):,} pods" if len(times) > 1 else "its one pod"
        ran = [
            max(0.0, each.running - each.created - (stop.seconds if each.in_place else 0.0))
            for each in times
        ]
        pull = Duration(_mean(ran), source, True)
        start = Duration(_mean([each.ready - each.running for each in times]), source, True)
    return Durations(pull, start, stop)


def begun_at(pod: Pod) -> float | None:
    """Return when a pod was created, or when its containers were last changed in place."""
    created = seconds(pod.metadata.creation_timestamp)
    state = read_state(pod)
    try:
        changed = parse_time(state.update_timestamp) if state is not None else created
    except TimeError:
        changed = created
    if created is None or changed is None:
        return created
    return max(created, changed)


def _times(pod: Pod) -> _Times | None:
    """Return the times of a pod that became Ready without a detour; None for another one."""
    begun, ready = begun_at(pod), pod.condition(keys.READY)
    statuses = pod.status.container_statuses
    if begun is None or ready is None or ready.status != "True" or not statuses:
        return None
    changed = read_state(pod) is not None  # each update in place restarts containers
    if any(each.restart_count and not changed for each in statuses):
        return None
    started = [
        seconds(each.state.running.started_at)
        for each in statuses
        if each.state.running is not None
    ]
    known = [each for each in started if each is not None]
    since = seconds(ready.last_transition_time)
    if len(known) < len(statuses) or since is None:
        return None
    running = max(begun, *known)
    found = _Times(begun, running, max(running, since), changed)
    return found if found.ready - begun <= _MAX_START else None


def _stop(pods: Sequence[Pod], *, at_once: int, min_ready_seconds: int, grace: float) -> Duration:
    """Return how long pods took to stop, by the gaps of the last update.

    An update goes on when a node becomes available: the pod that is then taken has stopped when its
    successor is created. With a budget of n, the nth available before a creation has caused it.
    """
    times = sorted(
        (found for pod in _of_newest_revision(pods) if (found := _times(pod)) is not None),
        key=lambda each: each.created,
    )
    available = sorted(each.ready + min_ready_seconds for each in times)
    gaps = [each.created - before for each, before in zip(times[at_once:], available, strict=False)]
    if at_once and len(gaps) >= _FEWEST_GAPS:
        gap = _mean(gaps)
        if 0 <= gap <= grace + _STOP_TOLERANCE:
            source = f"the mean of {len(gaps):,} gaps between pods of the last update"
            return Duration(gap, source, True)
    return Duration(min(STOP, grace), "assumed: the pods do not tell")


def _mean(values: Sequence[float]) -> float:
    """Return the mean, in which no value counts more than three times the median.

    The pace of an update follows the mean; a pod that once took an hour must not decide it. Times
    are whole seconds, so that a median of 0 is taken to be one.
    """
    most = 3 * max(1.0, median(values))
    return fmean(min(each, most) for each in values)


def _of_newest_revision(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods of the revision of which one was created last, without in-place updates."""
    created = [pod for pod in pods if read_state(pod) is None and begun_at(pod) is not None]
    if not created:
        return []
    newest = max(created, key=lambda pod: (begun_at(pod) or 0.0, pod.name))
    return [pod for pod in created if pod.hash == newest.hash]
