"""In-place updates (R6): the next write, derived from the pod alone.

The order of writes: close the readiness gate; write the hash, the record and the images in one
patch; open the gate when the containers run the images. A resize is a separate write. It is
finished before the images are written. Because each step is derived from the pod, an update that a
crash or another controller interrupted is continued.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod, Resources
from everynode.api.times import format_time, seconds
from everynode.decide.actions import Cause, Notice, PatchPod
from everynode.decide.inplace.diff import InPlaceChange, Recreate, classify
from everynode.decide.inplace.gates import GateWrite, gate_patch, has_gate, is_open
from everynode.decide.inplace.state import (
    INFEASIBLE,
    Batch,
    InPlaceStage,
    InPlaceState,
    LastStatus,
    are_containers_restarted,
    is_gate_closed,
    read_state,
    resize_trouble,
    stage,
    started_at,
    write_state,
)
from everynode.decide.node.clock_skew import FutureTimes, effective_time
from everynode.decide.pods.patch import patch_pod
from everynode.decide.revisions.target import Revision, TemplateDefaults, no_extra_defaults

# How long a step may take before the pod is recreated instead.
IN_PLACE_TIMEOUT: Final = 600.0
# How long after its image was changed a restarted container counts as updated although the kubelet
# reports id and name of the old image. Until then it may be a restart of the old image.
SAME_IMAGE_TIMEOUT: Final = 60.0
STARTED: Final = "StartInPlaceUpdate"


class Wait(msgspec.Struct, frozen=True):
    """Nothing to write until the kubelet reports; after `until` the update has timed out."""

    until: float
    reason: str = ""


class Done(msgspec.Struct, frozen=True):
    """The pod is at the target and there is nothing left to write."""


NextStep = PatchPod | Wait | Done | Recreate


def next_step(
    pod: Pod,
    old: Revision | None,
    target: Revision,
    *,
    now: float,
    ahead: FutureTimes = (),
    extra_defaults: TemplateDefaults = no_extra_defaults,
) -> NextStep:
    """Return the next step of an in-place update of this pod to the target.

    `old` is the revision of the pod. Call it only for a pod that may be updated now: the first
    step takes it out of service.
    """
    if pod.hash == target.hash:
        return _continue_update(pod, now, ahead)
    change = _change_for(pod, old, target, extra_defaults)
    if isinstance(change, Recreate):
        return change
    state = read_state(pod)
    settled = stage(pod, state) is InPlaceStage.FINISHED
    if settled and _gate_closed_at(pod, now, ahead) + IN_PLACE_TIMEOUT <= now:
        return Recreate("the pod was made unready, but could not be changed for 10 minutes")
    pending = InPlaceState() if settled or state is None else state
    return _start_update(pod, change, target, pending=pending, now=now)


def maintenance_patch(pod: Pod, *, now: float, ahead: FutureTimes = ()) -> PatchPod | None:
    """Return the patch for a pod that is not to be updated now; None if it needs none.

    It opens gates or continues an update that has begun.
    """
    if pod.terminating or pod.finished:
        return None
    state = read_state(pod)
    at = stage(pod, state)
    gates = _gates_to_open(pod, at)
    if gates:
        return gate_patch(pod, gates, now=now, cause=Cause.GATE)
    if state is None:
        return None
    settles = _settles_at(pod, state, at, ahead)
    if settles is not None and settles <= now:
        return _settle_images(pod, state, now)
    return _next_recorded_write(pod, state, at, now)


def settles_at(pod: Pod, ahead: FutureTimes = ()) -> float | None:
    """Return when the restarted containers of an update count as done; None if they do not yet."""
    state = read_state(pod)
    return None if state is None else _settles_at(pod, state, stage(pod, state), ahead)


def has_gates_to_open(pod: Pod) -> bool:
    """Whether `maintenance_patch` returns a patch for a pod without a recorded update."""
    return not (pod.terminating or pod.finished) and bool(
        _gates_to_open(pod, InPlaceStage.FINISHED)
    )


def _gates_to_open(pod: Pod, at: InPlaceStage) -> list[GateWrite]:
    """Return gates that were never written, and those left closed by a finished update."""
    gates = []
    if has_gate(pod, keys.KRUISE_POD_READY) and pod.condition(keys.KRUISE_POD_READY) is None:
        gates.append(GateWrite(keys.KRUISE_POD_READY, open=True))
    if is_gate_closed(pod) and at is InPlaceStage.FINISHED:
        gates.append(GateWrite(keys.INPLACE_UPDATE_READY, open=True))
    return gates


# --- Continuing an update ----------------------------------------------------------------------


def _continue_update(pod: Pod, now: float, ahead: FutureTimes) -> NextStep:
    state = read_state(pod)
    at = stage(pod, state)
    if at is InPlaceStage.FINISHED or state is None:
        return maintenance_patch(pod, now=now, ahead=ahead) or Done()
    until = effective_time(_started_at(pod, state), ahead) + IN_PLACE_TIMEOUT
    if at is InPlaceStage.RESIZING and resize_trouble(pod) == INFEASIBLE:
        return Recreate("the node cannot give the pod the resources it now asks for")
    if now >= until and at is not InPlaceStage.RESIZED:
        return Recreate(f"not updated in place within 10 minutes: {at.value}")
    settles = _settles_at(pod, state, at, ahead)
    wake_at = until if settles is None else min(until, settles)
    return maintenance_patch(pod, now=now, ahead=ahead) or Wait(wake_at, at.value)


def _next_recorded_write(
    pod: Pod, state: InPlaceState, at: InPlaceStage, now: float
) -> PatchPod | None:
    """Return the next write of the recorded update; None while it waits for the kubelet."""
    if at is InPlaceStage.RESIZE:
        return _resize(pod, state.next_container_resources or {})
    if at is InPlaceStage.RESIZED:
        return _clear_resize(pod, state, now)
    if at is not InPlaceStage.NEXT:
        return None
    if not is_gate_closed(pod) and has_gate(pod, keys.INPLACE_UPDATE_READY):
        return _close_gate(pod, now)
    images = state.next_container_images or {}
    written = msgspec.structs.replace(
        state,
        last_container_statuses=_last_statuses(pod, state, images),
        update_resources=False,
        update_images=True,
        next_container_images=None,
        next_container_resources=None,
        pre_check_before_next=None,
        container_batches_record=(*(state.container_batches_record or ()), _batch(images, now)),
    )
    return _update_patch(pod, {"annotations": _record(written)}, images)


def _resize(pod: Pod, wanted: Mapping[str, Resources]) -> PatchPod:
    there = [each.name for each in pod.spec.containers]
    containers = [
        {"name": name, "resources": _resources_json(wanted[name])}
        for name in there
        if name in wanted
    ]
    spec = {"containers": containers}
    return patch_pod(pod, Cause.IN_PLACE, spec=spec, subresource="resize")


def _resources_json(resources: Resources) -> dict[str, Any]:
    both = {"limits": resources.limits, "requests": resources.requests}
    return {kind: dict(amounts) for kind, amounts in both.items() if amounts}


def _clear_resize(pod: Pod, state: InPlaceState, now: float) -> PatchPod:
    """Remove the finished resize from the record, so that later resizes by others are kept."""
    return _close_record(pod, msgspec.structs.replace(state, next_container_resources=None), now)


def _close_record(pod: Pod, done: InPlaceState, now: float) -> PatchPod:
    metadata = {"annotations": _record(done)}
    if is_gate_closed(pod):
        gate = GateWrite(keys.INPLACE_UPDATE_READY, open=True)
        return gate_patch(pod, (gate,), now=now, cause=Cause.IN_PLACE, metadata=metadata)
    return patch_pod(pod, Cause.IN_PLACE, metadata=metadata)


def _settles_at(
    pod: Pod, state: InPlaceState, at: InPlaceStage, ahead: FutureTimes
) -> float | None:
    """Return when containers that restarted without a sign of the new image count as updated."""
    if at is not InPlaceStage.RESTARTING or state.next_container_images:
        return None
    if not are_containers_restarted(pod, state):
        return None
    return effective_time(_started_at(pod, state), ahead) + SAME_IMAGE_TIMEOUT


def _settle_images(pod: Pod, state: InPlaceState, now: float) -> PatchPod:
    """Remove the finished change of images from the record, and open the gate."""
    return _close_record(pod, msgspec.structs.replace(state, last_container_statuses=None), now)


# --- Starting an update ------------------------------------------------------------------------


def _change_for(
    pod: Pod, old: Revision | None, target: Revision, extra_defaults: TemplateDefaults
) -> InPlaceChange | Recreate:
    if not has_gate(pod, keys.INPLACE_UPDATE_READY):
        return Recreate(f"the pod was made without the readiness gate {keys.INPLACE_UPDATE_READY}")
    if old is None:
        return Recreate("the revision the pod was made from is gone")
    if pod.finished:
        return Recreate("the pod has ended")
    change = classify(extra_defaults(old.template), extra_defaults(target.template))
    if isinstance(change, Recreate):
        return change
    there = {each.name for each in pod.spec.containers}
    missing = [name for name in sorted({**change.images, **change.resources}) if name not in there]
    return Recreate(f"the pod has no container {missing[0]}") if missing else change


def _start_update(
    pod: Pod, change: InPlaceChange, target: Revision, *, pending: InPlaceState, now: float
) -> PatchPod:
    """Return the first write: close the gate if a container restarts, else write the update.

    What an unfinished update (`pending`) has not written, or has not seen done, becomes part of it.
    """
    images = {**(pending.next_container_images or {}), **change.images}
    resources = _merge_resources(pending.next_container_resources or {}, change.resources)
    if resources:
        record = _record_of_resize(pending, resources, images, now)
    else:
        record = _record_of_images(pod, pending, images, now)
    metadata = _metadata(change, target, msgspec.structs.replace(record, revision=target.hash))
    gate_is_due = (change.restarts or bool(images)) and not is_gate_closed(pod)
    if gate_is_due and resources:
        # No image is written yet, so that the metadata fits into the patch of the status.
        return _close_gate(pod, now, metadata=metadata)
    if gate_is_due:
        return _close_gate(pod, now)
    return _update_patch(pod, metadata, {} if resources else images)


def _record_of_resize(
    pending: InPlaceState, resources: dict[str, Resources], images: dict[str, str], now: float
) -> InPlaceState:
    """Return the record of an update that writes its images after the resize."""
    return InPlaceState(
        update_timestamp=format_time(now),
        last_container_statuses=pending.last_container_statuses,
        update_resources=True,
        update_images=bool(images),
        next_container_images=images,
        next_container_resources=resources,
        container_batches_record=(_batch(resources, now),),
    )


def _record_of_images(
    pod: Pod, pending: InPlaceState, images: dict[str, str], now: float
) -> InPlaceState:
    """Return the record of an update that writes its images at once."""
    return InPlaceState(
        update_timestamp=format_time(now),
        last_container_statuses=_last_statuses(pod, pending, images),
        update_images=bool(images),
        container_batches_record=(_batch(images, now),),
    )


def _close_gate(pod: Pod, now: float, *, metadata: Mapping[str, Any] | None = None) -> PatchPod:
    gate = GateWrite(keys.INPLACE_UPDATE_READY, open=False, reason=STARTED)
    return gate_patch(pod, (gate,), now=now, cause=Cause.IN_PLACE, metadata=metadata)


def _update_patch(pod: Pod, metadata: Mapping[str, Any], images: Mapping[str, str]) -> PatchPod:
    containers = [{"name": name, "image": images[name]} for name in sorted(images)]
    return patch_pod(
        pod,
        Cause.IN_PLACE,
        metadata=metadata,
        spec={"containers": containers} if containers else None,
        notice=Notice(
            "Normal", "SuccessfulUpdatePodInPlace", f"successfully update pod {pod.name} in-place"
        ),
    )


def _metadata(change: InPlaceChange, target: Revision, state: InPlaceState) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "labels": {**change.labels, keys.REVISION_HASH: target.hash},
        "annotations": {**change.annotations, **_record(state)},
    }
    if change.new_finalizers:
        metadata["finalizers"] = list(change.new_finalizers)
    if change.old_finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(change.old_finalizers)
    return metadata


def _record(state: InPlaceState) -> dict[str, str | None]:
    """Return the annotations that hold the record.

    Those with OpenKruise's old names, and those of postponed updates, are removed.
    """
    return {
        keys.INPLACE_STATE: write_state(state),
        keys.INPLACE_STATE_OLD: None,
        keys.INPLACE_GRACE: None,
        keys.INPLACE_GRACE_OLD: None,
    }


def _batch(changed: Mapping[str, object], now: float) -> Batch:
    return Batch(format_time(now), tuple(sorted(changed)))


def _last_statuses(
    pod: Pod, pending: InPlaceState, images: Mapping[str, str]
) -> dict[str, LastStatus]:
    """Return the images and containers that run before these images are written.

    Containers that an unfinished update has changed stay in the record.
    """
    waiting = pending.last_container_statuses or {}
    statuses = {each.name: each for each in pod.status.container_statuses}
    found = dict(waiting)
    for container in pod.spec.containers:
        name, old = container.name, container.image
        if images.get(name, old) == old:
            continue
        status = statuses.get(name)
        image_id, container_id = (status.image_id, status.container_id) if status else ("", "")
        may_still_start = name in waiting or not image_id
        found[name] = LastStatus(image_id, container_id, old if may_still_start else "")
    return found


def _merge_resources(
    pending: Mapping[str, Resources], wanted: Mapping[str, Resources]
) -> dict[str, Resources]:
    """Return the resources of an unfinished resize, overridden by those wanted now."""
    merged = {}
    for name in sorted({**pending, **wanted}):
        old, new = pending.get(name, Resources()), wanted.get(name, Resources())
        merged[name] = Resources(
            requests={**old.requests, **new.requests}, limits={**old.limits, **new.limits}
        )
    return merged


# --- Times -------------------------------------------------------------------------------------


def _started_at(pod: Pod, state: InPlaceState) -> float:
    """Return when the step began; without a time in the record, that of the gate or of the pod."""
    begun = started_at(state)
    if begun is not None:
        return begun
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    moment = condition.last_transition_time if condition is not None else None
    moment = moment or pod.status.start_time or pod.metadata.creation_timestamp
    return 0.0 if moment is None else seconds(moment)


def _gate_closed_at(pod: Pod, now: float, ahead: FutureTimes) -> float:
    """Return when the gate was closed for an update that is not written; `now` if it is open."""
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    if condition is None or is_open(pod, keys.INPLACE_UPDATE_READY):
        return now
    moment = condition.last_transition_time
    if moment is None or condition.reason != STARTED:
        return now
    return effective_time(seconds(moment), ahead)
