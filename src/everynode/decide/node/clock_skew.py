"""Clock skew: times that nodes write are bounded by the API server's clock and by ours.

- A time in the future counts from when we first saw it. The clock of a node may be ahead of ours,
  our clock may have been set back, and any client may write any time. Without this rule a back-off
  or a timeout would wait until that time. When a time was first seen is part of the node's view. It
  is not stored: a restarted controller starts again.
- A pod cannot start before it exists. If its kubelet says so, the node's clock is behind, and the
  times that this kubelet writes are corrected by as much. If a corrected time is in the future, the
  clock was set right meanwhile, and the time counts from when we first saw it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide.inplace.state import read_state, started_at

# Pairs of a time that was in the future when first seen, and when it was first seen.
FutureTimes = tuple[tuple[float, float], ...]

# By how many seconds a corrected time may be in the future while the clock is still behind: all
# times are written in whole seconds.
_ROUNDING: Final = 2.0


def effective_time(moment: float, ahead: FutureTimes) -> float:
    """Return the time itself; if it was in the future when first seen, when it was first seen."""
    for time, seen_at in ahead:
        if time == moment:
            return seen_at
    return moment


def behind_by(pod: Pod) -> float:
    """Return by how many seconds the clock of the pod's node is behind, as far as the pod shows.

    Two times that the kubelet wrote must show it, so that one odd start time moves nothing.
    """
    created, started = pod.metadata.creation_timestamp, pod.status.start_time
    if created is None or started is None:
        return 0.0
    if started.tzinfo is created.tzinfo and started >= created:
        return 0.0  # the usual case, without the cost of a conversion
    condition = pod.condition("Initialized")
    if condition is None or condition.last_transition_time is None:
        return 0.0
    first = max(seconds(started), seconds(condition.last_transition_time))
    return max(0.0, seconds(created) - first)


def kubelet_time(pod: Pod, moment: datetime, ahead: FutureTimes = ()) -> float:
    """Return when something happened to which the pod's kubelet gave this time."""
    return effective_time(seconds(moment) + behind_by(pod), ahead)


def has_future_time(pod: Pod, now: datetime) -> bool:
    """Whether a time of the pod that we use is in the future; it runs for every pod event."""
    try:
        for moment in _times(pod):
            if moment > now:
                return True
    except TypeError:  # a time without a zone, which the API never writes
        return any(seconds(moment) > seconds(now) for moment in _times(pod))
    begun = _begun_at(pod)
    if begun is not None and begun > seconds(now):
        return True
    return any(time > seconds(now) + _ROUNDING for time in _corrected_times(pod))


def pod_times(pod: Pod) -> list[float]:
    """Return the times of the pod that decisions depend on; the deletion time is not one."""
    begun = _begun_at(pod)
    found = [*(seconds(moment) for moment in _times(pod)), *_corrected_times(pod)]
    return found if begun is None else [*found, begun]


def _times(pod: Pod) -> Iterator[datetime]:
    created, started = pod.metadata.creation_timestamp, pod.status.start_time
    if created is not None:
        yield created
    if started is not None:
        yield started
    for condition in pod.status.conditions:
        if condition.last_transition_time is not None:
            yield condition.last_transition_time
    yield from _container_times(pod)


def _container_times(pod: Pod) -> Iterator[datetime]:
    for status in pod.status.container_statuses:
        ended, running = status.state.terminated, status.state.running
        if ended is not None and ended.finished_at is not None:
            yield ended.finished_at
        # The start of a container matters only after a restart (see `proof`).
        if status.restart_count and running is not None and running.started_at is not None:
            yield running.started_at


def _corrected_times(pod: Pod) -> Iterator[float]:
    """Yield the times of a kubelet whose clock was behind, as they count; nothing otherwise."""
    behind = behind_by(pod)
    if not behind:
        return  # the usual case
    ready = pod.condition(keys.READY)
    if ready is not None and ready.last_transition_time is not None:
        yield seconds(ready.last_transition_time) + behind
    for moment in _container_times(pod):
        yield seconds(moment) + behind


def _begun_at(pod: Pod) -> float | None:
    noted = pod.metadata.annotations
    if not (noted.inplace_state or noted.inplace_state_old):
        return None  # the usual case
    state = read_state(pod)
    return None if state is None else started_at(state)
