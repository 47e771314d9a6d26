"""The next write of an in-place update, whatever was written before (rule R6).

The order: the readiness gate closes; the hash, the record and the images are written at once; when
the containers run them, the gate opens. A resize is a write of its own and goes before the images,
to its end. Each step is derived from the pod alone, so that a crash between two of them, or another
controller's half-done update, is simply taken up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod, Resources
from everynode.api.times import format_time, seconds
from everynode.decide.actions import Because, Notice, PatchPod
from everynode.decide.gates import Gate, gate_patch, has_gate, is_open
from everynode.decide.inplace_change import Change, Recreate, classify
from everynode.decide.inplace_state import (
    INFEASIBLE,
    Batch,
    LastStatus,
    Stage,
    State,
    begun_at,
    is_shut,
    read_state,
    resize_trouble,
    stage,
    write_state,
)
from everynode.decide.patch import patch_pod
from everynode.decide.revisions import Revision

__all__ = [
    "PATIENCE",
    "Change",
    "Done",
    "Recreate",
    "Step",
    "Wait",
    "classify",
    "has_gates_to_open",
    "next_step",
    "refresh",
]

# How long a step may take before the pod is replaced instead.
PATIENCE: Final = 600.0
STARTED: Final = "StartInPlaceUpdate"


class Wait(msgspec.Struct, frozen=True):
    """Nothing to write until the kubelet reports; at that time patience ends."""

    until: float
    reason: str = ""


class Done(msgspec.Struct, frozen=True):
    """The pod is at the target and nothing of an update is left."""


Step = PatchPod | Wait | Done | Recreate


def next_step(pod: Pod, old: Revision | None, target: Revision, *, now: float) -> Step:
    """What brings this pod nearer to the target without replacing it.

    `old` is the revision the pod carries. The pod must be one that may be updated now: the first
    step takes it out of service.
    """
    if pod.hash == target.hash:
        return _resume(pod, now)
    change = _fitting_change(pod, old, target)
    if isinstance(change, Recreate):
        return change
    state = read_state(pod)
    settled = stage(pod, state) is Stage.FINISHED
    if settled and _shut_since(pod, now) + PATIENCE <= now:
        return Recreate("the pod was made unready, but could not be changed for 10 minutes")
    return _begin(pod, change, target, state=None if settled else state, now=now)


def refresh(pod: Pod, *, now: float) -> PatchPod | None:
    """What a pod needs that is not to be updated now: gates opened, a begun update carried on."""
    if pod.terminating or pod.finished:
        return None
    state = read_state(pod)
    at = stage(pod, state)
    gates = _to_open(pod, at)
    if gates:
        return gate_patch(pod, gates, now=now, because=Because.GATE)
    return None if state is None else _carry_on(pod, state, at, now)


def has_gates_to_open(pod: Pod) -> bool:
    """Whether `refresh` says anything of a pod that has no update on record."""
    return not (pod.terminating or pod.finished) and bool(_to_open(pod, Stage.FINISHED))


def _to_open(pod: Pod, at: Stage) -> list[Gate]:
    """The gates that nobody has spoken of yet, and those left shut by an update that is over."""
    gates = []
    if has_gate(pod, keys.KRUISE_POD_READY) and pod.condition(keys.KRUISE_POD_READY) is None:
        gates.append(Gate(keys.KRUISE_POD_READY, open=True))
    if is_shut(pod) and at is Stage.FINISHED:
        gates.append(Gate(keys.INPLACE_UPDATE_READY, open=True))
    return gates


# --- Carrying on -------------------------------------------------------------------------------


def _resume(pod: Pod, now: float) -> Step:
    state = read_state(pod)
    at = stage(pod, state)
    if at is Stage.FINISHED or state is None:
        return refresh(pod, now=now) or Done()
    until = _begun(pod, state) + PATIENCE
    if at is Stage.RESIZING and resize_trouble(pod) == INFEASIBLE:
        return Recreate("the node cannot give the pod the resources it now asks for")
    if now >= until and at is not Stage.RESIZED:
        return Recreate(f"not updated in place within 10 minutes: {at.value}")
    return refresh(pod, now=now) or Wait(until, at.value)


def _carry_on(pod: Pod, state: State, at: Stage, now: float) -> PatchPod | None:
    """The write that the record asks for next, if the pod is ready for it."""
    if at is Stage.RESIZE:
        return _resize(pod, state.next_container_resources or {})
    if at is Stage.RESIZED:
        return _strike_off(pod, state, now)
    if at is not Stage.NEXT:
        return None
    if not is_shut(pod) and has_gate(pod, keys.INPLACE_UPDATE_READY):
        return _close(pod, now)
    images = state.next_container_images or {}
    running = _running(pod, images)
    written = msgspec.structs.replace(
        state,
        last_container_statuses={**(state.last_container_statuses or {}), **running},
        update_resources=False,
        update_images=True,
        next_container_images=None,
        next_container_resources=None,
        pre_check_before_next=None,
        container_batches_record=(*(state.container_batches_record or ()), _batch(images, now)),
    )
    return _write(pod, {"annotations": _record(written)}, images)


def _resize(pod: Pod, wanted: Mapping[str, Resources]) -> PatchPod:
    there = [each.name for each in pod.spec.containers]
    containers = [
        {"name": name, "resources": _said(wanted[name])} for name in there if name in wanted
    ]
    spec = {"containers": containers}
    return patch_pod(pod, Because.IN_PLACE, spec=spec, subresource="resize")


def _said(resources: Resources) -> dict[str, Any]:
    both = {"limits": resources.limits, "requests": resources.requests}
    return {kind: dict(amounts) for kind, amounts in both.items() if amounts}


def _strike_off(pod: Pod, state: State, now: float) -> PatchPod:
    """Forget what was to be resized: later changes of the pod's resources are not ours to undo."""
    done = msgspec.structs.replace(state, next_container_resources=None)
    metadata = {"annotations": _record(done)}
    if is_shut(pod):
        gate = Gate(keys.INPLACE_UPDATE_READY, open=True)
        return gate_patch(pod, (gate,), now=now, because=Because.IN_PLACE, metadata=metadata)
    return patch_pod(pod, Because.IN_PLACE, metadata=metadata)


# --- Beginning ---------------------------------------------------------------------------------


def _fitting_change(pod: Pod, old: Revision | None, target: Revision) -> Change | Recreate:
    if not has_gate(pod, keys.INPLACE_UPDATE_READY):
        return Recreate(f"the pod was made without the readiness gate {keys.INPLACE_UPDATE_READY}")
    if old is None:
        return Recreate("the revision the pod was made from is gone")
    if pod.finished:
        return Recreate("the pod has ended")
    change = classify(old.template, target.template)
    if isinstance(change, Recreate):
        return change
    there = {each.name for each in pod.spec.containers}
    missing = [name for name in sorted({**change.images, **change.resources}) if name not in there]
    return Recreate(f"the pod has no container {missing[0]}") if missing else change


def _begin(
    pod: Pod, change: Change, target: Revision, *, state: State | None, now: float
) -> PatchPod:
    """The first writes: close the gate where a container stops; then say what is being done."""
    images = {**((state and state.next_container_images) or {}), **change.images}
    resources = _merge((state and state.next_container_resources) or {}, change.resources)
    written = {} if resources else images
    made = State(
        revision=target.hash,
        update_timestamp=format_time(now),
        # What an unfinished update waits for, the new one waits for too.
        last_container_statuses={
            **((state and state.last_container_statuses) or {}),
            **_running(pod, written),
        },
        update_resources=bool(resources),
        update_images=bool(images),
        next_container_images=images if resources else None,
        next_container_resources=resources,
        container_batches_record=(_batch(resources or images, now),),
    )
    metadata = _metadata(change, target, made)
    if (change.restarts or images) and not is_shut(pod):
        # Before a resize nothing of the spec is written here, so that one write can say it all.
        return _close(pod, now, metadata=metadata if resources else None)
    return _write(pod, metadata, written)


def _close(pod: Pod, now: float, *, metadata: Mapping[str, Any] | None = None) -> PatchPod:
    gate = Gate(keys.INPLACE_UPDATE_READY, open=False, reason=STARTED)
    return gate_patch(pod, (gate,), now=now, because=Because.IN_PLACE, metadata=metadata)


def _write(pod: Pod, metadata: Mapping[str, Any], images: Mapping[str, str]) -> PatchPod:
    containers = [{"name": name, "image": images[name]} for name in sorted(images)]
    return patch_pod(
        pod,
        Because.IN_PLACE,
        metadata=metadata,
        spec={"containers": containers} if containers else None,
        notice=Notice(
            "Normal", "SuccessfulUpdatePodInPlace", f"successfully update pod {pod.name} in-place"
        ),
    )


def _metadata(change: Change, target: Revision, state: State) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "labels": {**change.labels, keys.REVISION_HASH: target.hash},
        "annotations": {**change.annotations, **_record(state)},
    }
    if change.new_finalizers:
        metadata["finalizers"] = list(change.new_finalizers)
    if change.old_finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(change.old_finalizers)
    return metadata


def _record(state: State) -> dict[str, str | None]:
    """The annotation; those of the names it used to have, and of postponed updates, are removed."""
    return {
        keys.INPLACE_STATE: write_state(state),
        keys.INPLACE_STATE_OLD: None,
        keys.INPLACE_GRACE: None,
        keys.INPLACE_GRACE_OLD: None,
    }


def _batch(changed: Mapping[str, object], now: float) -> Batch:
    return Batch(format_time(now), tuple(sorted(changed)))


def _running(pod: Pod, images: Mapping[str, str]) -> dict[str, LastStatus]:
    """What runs in the containers that are about to get another image."""
    live = {each.name: each.image for each in pod.spec.containers}
    statuses = {each.name: each for each in pod.status.container_statuses}
    return {
        name: LastStatus(statuses[name].image_id, statuses[name].container_id)
        if name in statuses
        else LastStatus()
        for name in sorted(images)
        if live.get(name) != images[name]
    }


def _merge(
    pending: Mapping[str, Resources], wanted: Mapping[str, Resources]
) -> dict[str, Resources]:
    """What an unfinished resize still has to do, overruled by what is wanted now."""
    merged = {}
    for name in sorted({**pending, **wanted}):
        old, new = pending.get(name, Resources()), wanted.get(name, Resources())
        merged[name] = Resources(
            requests={**old.requests, **new.requests}, limits={**old.limits, **new.limits}
        )
    return merged


# --- Times -------------------------------------------------------------------------------------


def _begun(pod: Pod, state: State) -> float:
    """When the step was begun; by the gate, or else by the pod, if the record does not tell."""
    begun = begun_at(state)
    if begun is not None:
        return begun
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    moment = condition.last_transition_time if condition is not None else None
    moment = moment or pod.status.start_time or pod.metadata.creation_timestamp
    return 0.0 if moment is None else seconds(moment)


def _shut_since(pod: Pod, now: float) -> float:
    """When the pod was taken out of service for an update that has not been written since."""
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    if condition is None or is_open(pod, keys.INPLACE_UPDATE_READY):
        return now
    moment = condition.last_transition_time
    return now if moment is None or condition.reason != STARTED else seconds(moment)
