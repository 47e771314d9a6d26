"""Pod health: what R4 (docs/rules.md#r4) asks of a pod beyond availability, without `decide`.

A target pod proves the target when it has been Ready for 2 seconds, and not within 5 minutes of a
restart. An old pod is sick if it never was Ready, waits in a back-off, or has not been Ready for
30 seconds. Times that a kubelet wrote are moved by as much as its clock is behind.
"""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import ContainerStatus, Pod
from everynode.api.times import TimeError, parse_time, seconds
from everynode.sim.checks.inplace_progress import inplace_state_of

_TRIAL_SECONDS: Final = 2.0
_TRUST_SECONDS: Final = 300.0
_BLIP_SECONDS: Final = 30.0
_ORDINARY: Final = frozenset(("", "ContainerCreating", "PodInitializing"))


def clock_lag(pod: Pod) -> float:
    """How many seconds the node's clock is behind: its kubelet started the pod before it existed.

    The start and the Initialized condition both have to show it.
    """
    born = seconds(pod.metadata.creation_timestamp)
    initialized = pod.condition("Initialized")
    times = (pod.status.start_time, initialized and initialized.last_transition_time)
    if born is None or not all(times):
        return 0.0
    return max(0.0, born - max(seconds(each) for each in times if each))


def trusted_from(pod: Pod) -> float:
    """The time from which restarts of a target pod are forgiven; 0 without a restart."""
    times = [0.0]
    for each in pod.status.container_statuses:
        run = each.state.running
        if each.restart_count > 0 and run and run.started_at and not _was_update(pod, each):
            times.append(seconds(run.started_at) + clock_lag(pod) + _TRUST_SECONDS)
    return max(times)


def _was_update(pod: Pod, status: ContainerStatus) -> bool:
    """Whether the last run of this container ended because the pod was updated in place."""
    ended = status.last_state.terminated
    note = inplace_state_of(pod)
    if ended is None or note.get("revision") != pod.hash:
        return False
    known = ((note.get("lastContainerStatuses") or {}).get(status.name) or {}).get("containerID")
    if known:
        return bool(known == ended.container_id)
    batches = note.get("containerBatchesRecord") or [{"timestamp": note.get("updateTimestamp")}]
    try:
        began = parse_time(str(batches[-1].get("timestamp")))
    except TimeError:
        return False
    return ended.started_at is not None and seconds(ended.started_at) + clock_lag(pod) < began


def proves_from(pod: Pod) -> float:
    """The time from which a Ready target pod proves the target if it stays as it is."""
    ready = pod.condition(keys.READY)
    since = ready.last_transition_time if ready is not None else None
    settled = 0.0 if since is None else seconds(since) + clock_lag(pod) + _TRIAL_SECONDS
    return max(settled, trusted_from(pod))


def sick_from(pod: Pod) -> float:
    """The time from which a pod that is not Ready is sick if it stays as it is; 0: it is."""
    ready, started = pod.condition(keys.READY), pod.status.start_time
    if ready is None or ready.last_transition_time is None or started is None:
        return 0.0
    waiting = [each.state.waiting for each in pod.status.container_statuses]
    if any(each is not None and each.reason not in _ORDINARY for each in waiting):
        return 0.0
    since = seconds(ready.last_transition_time)
    never_ready = since - seconds(started) <= 1.0
    return 0.0 if never_ready else since + clock_lag(pod) + _BLIP_SECONDS
