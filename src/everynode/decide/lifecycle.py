"""Whether a preDelete hook holds a pod, and how the pod is marked while it does."""

from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.api.daemonset import Hook
from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.actions import Because, PatchPod
from everynode.decide.gates import Gate, gate_patch, has_gate
from everynode.decide.patch import patch_pod


class Blocker(msgspec.Struct, frozen=True, rename="camel"):
    """Who keeps KruisePodReady False, and for what; the condition's message lists them."""

    user_agent: str
    key: str


PRE_DELETE = Blocker("Lifecycle", "preDeleteHook")


def is_hooked(pod: Pod, hook: Hook | None) -> bool:
    """Whether the hook holds the pod: by any of its finalizers or by any of its labels."""
    if hook is None:
        return False
    labels = pod.metadata.labels
    return any(name in pod.metadata.finalizers for name in hook.finalizers) or any(
        labels.get(key) == value for key, value in hook.labels.items()
    )


def is_preparing(pod: Pod) -> bool:
    """Whether the pod is on its way out behind a hook.

    It is so from the first of the two writes on, so that a crash between them strands nobody.
    """
    return _is_labelled(pod) or PRE_DELETE in _blockers(pod)


def mark_preparing(pod: Pod, hook: Hook, now: float) -> tuple[PatchPod, ...]:
    """The next write that marks a hooked pod PreparingDelete; nothing once it is marked.

    Traffic is taken away first, when the hook asks for that; the hook's owner is told after.
    Each write depends on the one before being seen, so call again until nothing is returned.
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
    return (patch_pod(pod, Because.HOOK, metadata=metadata),)


def _is_labelled(pod: Pod) -> bool:
    return pod.metadata.labels.get(keys.LIFECYCLE_STATE) == keys.PREPARING_DELETE


def _blockers(pod: Pod) -> tuple[Blocker, ...]:
    """Who keeps the pod not ready by its KruisePodReady condition."""
    condition = pod.condition(keys.KRUISE_POD_READY)
    if condition is None or condition.status == "True" or not condition.message:
        return ()
    try:
        return msgspec.json.decode(condition.message, type=tuple[Blocker, ...])
    except (msgspec.DecodeError, RecursionError):
        return ()  # not written by anyone who follows the format: nobody to wait for


def _block(pod: Pod, blockers: tuple[Blocker, ...], now: float) -> PatchPod:
    ordered = sorted(blockers, key=lambda each: (each.user_agent, each.key))
    message = msgspec.json.encode(ordered).decode()
    gate = Gate(keys.KRUISE_POD_READY, open=False, message=message)
    return gate_patch(pod, (gate,), now=now, because=Because.HOOK)
