"""Seeded pod: how a pod that was copied from a real cluster continues on a simulated kubelet.

A pod that is starting or stopping needs the rest of its time. One that fails continues to fail
until the new version comes. Pure functions.
"""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide.inplace.state import read_state
from everynode.decide.node.availability import is_ready
from everynode.forecast.durations import begun_at

_PULL_REASONS: Final = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_NORMAL_REASONS: Final = ("", "ContainerCreating", "PodInitializing")
_START_TOLERANCE: Final = 60.0  # seconds that a pod may be late and still count as starting
_SOON: Final = 1.0


def describe_pod(pod: Pod, now: float, *, grace: float, start: float, stop: float) -> str:
    """Return the behaviour of a pod for the simulated kubelet; empty if nothing is special.

    `start` and `stop` are what a pod of the DaemonSet takes in all, `grace` what this one was
    given to end.
    """
    if pod.metadata.deletion_timestamp is not None:
        deleted = seconds(pod.metadata.deletion_timestamp) - grace
        return f"stop={_rest(stop, deleted, now):.3f}"
    if pod.finished or is_ready(pod):
        return ""
    failure = failure_of(pod)
    if failure:
        return f"fail={failure}"
    begun = begun_at(pod)
    takes = start if read_state(pod) is None else stop + start
    if begun is None or now - begun > 2 * takes + _START_TOLERANCE:
        return "fail=probe"
    if containers_to_restart(pod):
        return f"stop={_rest(stop, begun, now):.3f}"
    rest = _rest(takes, begun, now)
    running = any(each.state.running is not None for each in pod.status.container_statuses)
    return f"ready={rest:.3f}" if running else f"start={rest:.3f} ready=0"


def containers_to_restart(pod: Pod) -> frozenset[str]:
    """Return the containers that still run as they did before an update in place."""
    state = read_state(pod)
    if state is None or state.revision != pod.hash:
        return frozenset()
    before = state.last_container_statuses or {}
    return frozenset(
        each.name
        for each in pod.status.container_statuses
        if each.state.running is not None
        and each.name in before
        and before[each.name].container_id == each.container_id
    )


def failure_of(pod: Pod) -> str:
    """Return what fails in a pod that is not Ready: pull or crash; empty if it may only be slow."""
    for status in pod.status.container_statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _NORMAL_REASONS:
            crashed = waiting.reason not in _PULL_REASONS and status.restart_count > 0
            return "crash" if crashed or waiting.reason == "CrashLoopBackOff" else "pull"
        if status.state.terminated is not None or status.restart_count > 0:
            return "crash" if keys.INPLACE_UPDATE_READY not in _gates(pod) else ""
    return ""


def _gates(pod: Pod) -> set[str]:
    return {gate.condition_type for gate in pod.spec.readiness_gates}


def _rest(takes: float, since: float, now: float) -> float:
    return max(_SOON, takes - max(0.0, now - since))
