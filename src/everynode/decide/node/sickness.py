"""Sickness (R4): whether an old pod that is not Ready is replaced as sick.

A pod that is not Ready for a moment is an ordinary pod that happens to be down: replacing all pods
of a fleet because of one failed probe would do more harm than the probe.
"""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.decide.node.clock_skew import FutureTimes, kubelet_time

PATIENCE: Final = 30.0  # seconds that a pod may be not Ready before it counts as sick
# A kubelet writes the start of a pod and its first conditions together, but the second may change
# in between.
_SAME_WRITE: Final = 1.0
_STARTING: Final = ("", "ContainerCreating", "PodInitializing")


def sick_at(pod: Pod, ahead: FutureTimes = ()) -> float:
    """Return when a pod that is not Ready counts as sick; 0 if it does already.

    It is sick at once if it never was Ready or if a container waits in a back-off.
    """
    condition, started = pod.condition(keys.READY), pod.status.start_time
    if condition is None or condition.last_transition_time is None or started is None:
        return 0.0
    if _waits_in_back_off(pod):
        return 0.0
    unready_at = kubelet_time(pod, condition.last_transition_time, ahead)
    if unready_at <= kubelet_time(pod, started, ahead) + _SAME_WRITE:
        return 0.0  # it never was Ready
    return unready_at + PATIENCE


def _waits_in_back_off(pod: Pod) -> bool:
    for status in pod.status.container_statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _STARTING:
            return True
    return False
