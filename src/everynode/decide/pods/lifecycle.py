"""preDelete hooks: whether one holds a pod, and the writes that mark it PreparingDelete."""

from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.api.daemonset import LifecycleHook
from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.actions import Cause, PatchPod
from everynode.decide.inplace.gates import GateWrite, gate_patch, has_gate
from everynode.decide.pods.patch import patch_pod


class Blocker(msgspec.Struct, frozen=True, rename="camel"):
    """One client that keeps KruisePodReady False; the message of the condition lists them."""

    user_agent: str
    key: str


PRE_DELETE = Blocker("Lifecycle", "preDeleteHook")


def is_hooked(pod: Pod, hook: LifecycleHook | None) -> bool:
    """Whether the hook holds the pod: by any of its finalizers or by any of its labels."""
    if hook is None:
        return False
    labels = pod.metadata.labels
    return any(name in pod.metadata.finalizers for name in hook.finalizers) or any(
        labels.get(key) == value for key, value in hook.labels.items()
    )


def is_preparing(pod: Pod) -> bool:
    """Whether the pod is marked PreparingDelete.

    The first of the two writes is enough: after a crash between them the second is still made.
    """
    return _is_labelled(pod) or PRE_DELETE in _blockers(pod)


def mark_preparing(pod: Pod, hook: LifecycleHook, now: float) -> tuple[PatchPod, ...]:
    """Return the next write that marks a hooked pod PreparingDelete; empty once it is marked.

    If the hook requires it, the first write makes the pod not Ready. The second writes the label
    for the owner of the hook. Call again when the first write is seen.
    """
    if hook.mark_not_ready and has_gate(pod, keys.KRUISE_POD_READY):
        blockers = _blockers(pod)
        if PRE_DELETE not in blockers:
            return (_block(pod, (*blockers, PRE_DELETE), now),)
    if _is_labelled(pod):
        return ()
    metadata = {
        "labels": {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE},
        "annotations": {keys.LIFECYCLE_TIMESTAMP: format_time(now)},
    }
    return (patch_pod(pod, Cause.HOOK, metadata=metadata),)


def _is_labelled(pod: Pod) -> bool:
    return pod.metadata.labels.get(keys.LIFECYCLE_STATE) == keys.PREPARING_DELETE


def _blockers(pod: Pod) -> tuple[Blocker, ...]:
    """Return the clients that keep the pod's KruisePodReady condition False."""
    condition = pod.condition(keys.KRUISE_POD_READY)
    if condition is None or condition.status == "True" or not condition.message:
        return ()
    try:
        return msgspec.json.decode(condition.message, type=tuple[Blocker, ...])
    except (msgspec.DecodeError, RecursionError):
        return ()  # not OpenKruise's format: it names no blocker


def _block(pod: Pod, blockers: tuple[Blocker, ...], now: float) -> PatchPod:
    ordered = sorted(blockers, key=lambda each: (each.user_agent, each.key))
    message = msgspec.json.encode(ordered).decode()
    gate = GateWrite(keys.KRUISE_POD_READY, open=False, message=message)
    return gate_patch(pod, (gate,), now=now, cause=Cause.HOOK)
