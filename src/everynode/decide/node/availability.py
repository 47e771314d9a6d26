"""Availability: a pod is Ready for minReadySeconds and has no in-place update under way."""

from __future__ import annotations

from everynode.api import keys
from everynode.api.objects import Condition, Pod
from everynode.api.times import seconds
from everynode.decide.inplace.state import has_unfinished_update, read_state, started_at
from everynode.decide.node.clock_skew import FutureTimes, behind_by, effective_time


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is True."""
    condition = pod.condition(keys.READY)
    return condition is not None and condition.status == "True"


def available_at(pod: Pod, min_ready_seconds: int, ahead: FutureTimes = ()) -> float | None:
    """Return when an active pod is or becomes available; None while a condition is missing.

    Without minReadySeconds no clock matters: the result for a Ready pod is 0.
    """
    if not is_ready(pod):
        return None
    for gate in pod.spec.readiness_gates:
        condition = pod.condition(gate.condition_type)
        if condition is None or condition.status != "True":
            return None
    if has_unfinished_update(pod):
        return None
    if min_ready_seconds <= 0:
        return 0.0
    since = [_since(pod, pod.condition(gate.condition_type)) for gate in pod.spec.readiness_gates]
    since.append(_resized_at(pod))
    # Only Ready is written by the node.
    since.append(_since(pod, pod.condition(keys.READY)) + behind_by(pod))
    if ahead:
        since = [effective_time(moment, ahead) for moment in since]
    return max(since) + min_ready_seconds


def _since(pod: Pod, condition: Condition | None) -> float:
    """Return when the condition changed; a condition without a time is as old as the pod."""
    if condition is not None and condition.last_transition_time is not None:
        return seconds(condition.last_transition_time)
    started = pod.status.start_time or pod.metadata.creation_timestamp
    return 0.0 if started is None else seconds(started)


def _resized_at(pod: Pod) -> float:
    """Return when a resize was written; 0 if none was.

    A resize that restarts no container closes no gate, so the conditions do not show its time.
    """
    state = read_state(pod)
    if state is None or not state.update_resources:
        return 0.0
    return started_at(state) or 0.0
