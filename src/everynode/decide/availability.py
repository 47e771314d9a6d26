"""From when on a pod is available: Ready, undisturbed, and for long enough."""

from __future__ import annotations

from everynode.api import keys
from everynode.api.objects import Condition, Pod
from everynode.api.times import seconds
from everynode.decide.inplace_state import begun_at, is_unfinished, read_state
from everynode.decide.lifecycle import is_preparing


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is True."""
    condition = pod.condition(keys.READY)
    return condition is not None and condition.status == "True"


def available_at(pod: Pod, min_ready_seconds: int) -> float | None:
    """The time from which the pod is available, None while something stands against it.

    Without minReadySeconds a Ready pod is available whatever the clocks say: the answer is zero.
    """
    if pod.terminating or pod.finished or is_preparing(pod):
        return None
    return stays_available_at(pod, min_ready_seconds)


def stays_available_at(pod: Pod, min_ready_seconds: int) -> float | None:
    """The same for a pod that neither ended nor is on its way out."""
    if not is_ready(pod):
        return None
    for gate in pod.spec.readiness_gates:
        condition = pod.condition(gate.condition_type)
        if condition is None or condition.status != "True":
            return None
    if is_unfinished(pod):
        return None
    if min_ready_seconds <= 0:
        return 0.0
    kinds = [keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates)]
    since = [_since(pod, pod.condition(kind)) for kind in kinds]
    return max(*since, _resized_at(pod)) + min_ready_seconds


def _since(pod: Pod, condition: Condition | None) -> float:
    """When the condition turned; a condition without a time is as old as the pod."""
    if condition is not None and condition.last_transition_time is not None:
        return seconds(condition.last_transition_time)
    started = pod.status.start_time or pod.metadata.creation_timestamp
    return 0.0 if started is None else seconds(started)


def _resized_at(pod: Pod) -> float:
    """A resize that restarts nothing closes no gate; it counts from when it was asked for."""
    state = read_state(pod)
    if state is None or not state.update_resources:
        return 0.0
    return begun_at(state) or 0.0
