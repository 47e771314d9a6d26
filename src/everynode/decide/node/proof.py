"""Proof (R4): when an available target pod shows that the target works.

Without minReadySeconds a container that crashes again and again is available for moments. The
budget therefore asks for more than availability, which is defined by Kubernetes:

- The first pods of a target must have been Ready for 2 seconds before the next node is taken. Once
  the target is proven on one node, the others need not wait.
- A pod with a container that restarted since the pod reached the target counts as down until that
  container has run for 5 minutes; an older restart does not matter.
"""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import ContainerStatus, Pod
from everynode.decide.inplace.state import read_state, started_at
from everynode.decide.node.clock_skew import FutureTimes, kubelet_time

PROVEN_AFTER: Final = 2.0  # seconds a pod must be Ready to prove the target
STEADY_AFTER: Final = 300.0  # seconds a restarted container must run to be trusted again


def steady_at(pod: Pod, ahead: FutureTimes = ()) -> float:
    """Return when the restarts of a running target pod no longer count; 0 if there were none."""
    steady = 0.0
    for status in pod.status.container_statuses:
        if not status.restart_count:
            continue  # the usual case
        running = status.state.running
        if running is None or running.started_at is None or not _target_restarted(pod, status):
            continue
        steady = max(steady, kubelet_time(pod, running.started_at, ahead) + STEADY_AFTER)
    return steady


def proven_at(pod: Pod, ahead: FutureTimes = ()) -> float:
    """Return when a Ready pod has been Ready for long enough to prove the target."""
    condition = pod.condition(keys.READY)
    if condition is None or condition.last_transition_time is None:
        return 0.0
    return kubelet_time(pod, condition.last_transition_time, ahead) + PROVEN_AFTER


def _target_restarted(pod: Pod, status: ContainerStatus) -> bool:
    """Whether the run of the container that ended last was one at the pod's present revision.

    An in-place update restarts containers too; what ended then is what ran before the update.
    """
    state = read_state(pod)
    ended = status.last_state.terminated
    if state is None or state.revision != pod.hash or ended is None:
        return True
    before = (state.last_container_statuses or {}).get(status.name)
    if before is not None and before.container_id:
        return ended.container_id != before.container_id
    updated_at = started_at(state)
    if ended.started_at is None or updated_at is None:
        return True
    return kubelet_time(pod, ended.started_at) >= updated_at
