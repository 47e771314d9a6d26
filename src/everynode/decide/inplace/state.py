"""In-place update state: the record in a pod's annotation, and the stage it is at.

The annotation has OpenKruise's format, so that each controller can continue an update of the other.
`containerID` and `image`, beside `imageID`, are our own additions, which OpenKruise ignores.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.image import same_image
from everynode.api.objects import ContainerStatus, Pod, Resources
from everynode.api.quantity import QuantityError, parse_quantity
from everynode.api.times import TimeError, parse_time
from everynode.decide.inplace.gates import has_gate, is_open

Amounts = dict[str, str | int | float]

RESIZABLE: Final = ("cpu", "memory")
RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"


class LastStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The image and the container that ran before the image was changed.

    `image` is in the record only if the kubelet may still start that image: it had not started the
    container yet, or an unfinished update has been replaced.
    """

    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    image: str = ""


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Containers that were changed together, and when."""

    timestamp: str = ""
    containers: tuple[str, ...] | None = ()


class PreCheck(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The containers that must be ready before the next ones are changed."""

    containers_required_ready: tuple[str, ...] | None = ()


class InPlaceState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The record of the last in-place update of a pod."""

    revision: str = ""
    update_timestamp: str = ""
    last_container_statuses: dict[str, LastStatus] | None = None
    update_env_from_metadata: bool = False
    update_resources: bool = False
    update_images: bool = False
    next_container_images: dict[str, str] | None = None
    next_container_resources: dict[str, Resources] | None = None
    pre_check_before_next: PreCheck | None = None
    container_batches_record: tuple[Batch, ...] | None = None


class InPlaceStage(enum.Enum):
    """The stages of an in-place update; the value is what the update waits for."""

    RESIZE = "the resize is to be written"
    RESIZING = "the kubelet is resizing"
    RESTARTING = "containers are to run their new images"
    NEXT = "the images are to be written"
    RESIZED = "the resize is done and to be removed from the record"
    FINISHED = "nothing"


_decoder = msgspec.json.Decoder(InPlaceState)


def read_state(pod: Pod) -> InPlaceState | None:
    """Return the pod's record of its last in-place update; None if absent or unreadable."""
    text = pod.metadata.annotations.inplace_state or pod.metadata.annotations.inplace_state_old
    if not text:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def state_fault(pod: Pod) -> str:
    """Return why the record cannot be read, for the node's reason; empty if it can."""
    text = pod.metadata.annotations.inplace_state or pod.metadata.annotations.inplace_state_old
    if not text:
        return ""
    try:
        _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"annotation {keys.INPLACE_STATE} cannot be read and is ignored: {error}"
    return ""


def write_state(state: InPlaceState) -> str:
    """Return the text of the annotation; empty fields are left out, as OpenKruise does."""
    always = {
        "revision": state.revision,
        "updateTimestamp": state.update_timestamp,
        "lastContainerStatuses": state.last_container_statuses or None,
    }
    optional: dict[str, Any] = {
        "updateEnvFromMetadata": state.update_env_from_metadata,
        "updateResources": state.update_resources,
        "updateImages": state.update_images,
        "nextContainerImages": state.next_container_images,
        "nextContainerResources": state.next_container_resources,
        "preCheckBeforeNext": state.pre_check_before_next,
        "containerBatchesRecord": state.container_batches_record,
    }
    present = {name: value for name, value in optional.items() if value}
    return msgspec.json.encode({**always, **present}).decode()


def started_at(state: InPlaceState) -> float | None:
    """Return when the latest batch was written; None if that time cannot be parsed."""
    batches = state.container_batches_record or ()
    try:
        return parse_time(batches[-1].timestamp if batches else state.update_timestamp)
    except TimeError:
        return None


def stage(pod: Pod, state: InPlaceState | None) -> InPlaceStage:
    """Return the stage of the recorded update; FINISHED without a record."""
    if state is None:
        return InPlaceStage.FINISHED
    wanted = state.next_container_resources or {}
    if wanted and not is_resize_written(pod, wanted):
        return InPlaceStage.RESIZE
    resized = bool(wanted) or (state.update_resources and is_gate_closed(pod))
    if resized and not is_resize_reported(pod, wanted):
        return InPlaceStage.RESIZING
    if not are_images_running(pod, state):
        return InPlaceStage.RESTARTING
    if state.next_container_images:
        return InPlaceStage.NEXT if _passed_precheck(pod, state) else InPlaceStage.RESTARTING
    return InPlaceStage.RESIZED if wanted else InPlaceStage.FINISHED


def has_unfinished_update(pod: Pod) -> bool:
    """Whether an in-place update of the pod is not finished."""
    return stage(pod, read_state(pod)) not in (InPlaceStage.FINISHED, InPlaceStage.RESIZED)


def is_gate_closed(pod: Pod) -> bool:
    """Whether the pod has the readiness gate of in-place updates and it is not True."""
    return has_gate(pod, keys.INPLACE_UPDATE_READY) and not is_open(pod, keys.INPLACE_UPDATE_READY)


# --- Resources ---------------------------------------------------------------------------------


def is_resize_written(pod: Pod, wanted: dict[str, Resources]) -> bool:
    """Whether the pod's spec has these resources."""
    return all(
        container.name not in wanted or _covers(container.resources, wanted[container.name])
        for container in pod.spec.containers
    )


def is_resize_reported(pod: Pod, wanted: dict[str, Resources]) -> bool:
    """Whether the pod's status reports the resources of the spec for these containers."""
    if resize_trouble(pod) or pod.condition(RESIZE_IN_PROGRESS) is not None:
        return False
    statuses = {status.name: status for status in pod.status.container_statuses}
    for container in pod.spec.containers:
        if wanted and container.name not in wanted:
            continue
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return False
        if not _covers(status.resources, _only_resizable(container.resources)):
            return False
    return True


def resize_trouble(pod: Pod) -> str:
    """Return why the kubelet has not started a resize, such as Infeasible; empty if it has."""
    pending = pod.condition(RESIZE_PENDING)
    if pending is not None and pending.status != "False":
        return pending.reason or "Deferred"
    # Before Kubernetes 1.33 this was in status.resize.
    return pod.status.resize if pod.status.resize in (INFEASIBLE, "Deferred", "Proposed") else ""


def _only_resizable(resources: Resources) -> Resources:
    return Resources(
        requests={
            name: resources.requests[name] for name in RESIZABLE if name in resources.requests
        },
        limits={name: resources.limits[name] for name in RESIZABLE if name in resources.limits},
    )


def _covers(have: Resources, wanted: Resources) -> bool:
    """Whether `have` contains every wanted amount."""
    return _has(have.requests, wanted.requests) and _has(have.limits, wanted.limits)


def _has(have: Amounts, wanted: Amounts) -> bool:
    return all(name in have and same_quantity(have[name], wanted[name]) for name in sorted(wanted))


def same_quantity(one: str | float, other: str | float) -> bool:
    """Whether two quantities are equal, such as 1 and 1000m."""
    try:
        return parse_quantity(one) == parse_quantity(other)
    except QuantityError:
        return one == other


# --- Images ------------------------------------------------------------------------------------


def are_images_running(pod: Pod, state: InPlaceState) -> bool:
    """Whether every container whose image was changed runs the new image."""
    if not state.last_container_statuses:
        return True
    return all(
        status is not None and _runs_new_image(status, image, last)
        for status, image, last in _changed_containers(pod, state)
    )


def are_containers_restarted(pod: Pod, state: InPlaceState) -> bool:
    """Whether every container whose image was changed runs again, maybe still with the old image.

    The kubelet reports nothing else if both images have the same content: a container runtime
    names one of the tags of an image, and that may be the old one.
    """
    return all(
        status is not None
        and (_runs_new_image(status, image, last) or _is_started_again(status, last))
        for status, image, last in _changed_containers(pod, state)
    )


def _changed_containers(
    pod: Pod, state: InPlaceState
) -> list[tuple[ContainerStatus | None, str, LastStatus]]:
    """Return status, image and record of each container whose image was changed, by name."""
    images = {container.name: container.image for container in pod.spec.containers}
    statuses = {status.name: status for status in pod.status.container_statuses}
    last = state.last_container_statuses or {}
    return [
        (statuses.get(name), images[name], last[name]) for name in sorted(last) if name in images
    ]


def _runs_new_image(status: ContainerStatus, image: str, last: LastStatus) -> bool:
    """Whether the container runs the image, as far as the reported ids and names prove it."""
    if not status.image_id:
        return False
    named = same_image(status.image, image)
    if last.container_id and status.container_id == last.container_id:
        # Another image always comes with another container, unless the update was taken back.
        return named and bool(last.image)
    if status.image_id == last.image_id:
        return named  # a new name of the same content
    return named or not same_image(status.image, last.image)


def _is_started_again(status: ContainerStatus, last: LastStatus) -> bool:
    known = bool(last.container_id) or not last.image_id
    restarted = known and bool(status.container_id) and status.container_id != last.container_id
    return restarted and status.state.running is not None


def _passed_precheck(pod: Pod, state: InPlaceState) -> bool:
    check = state.pre_check_before_next
    required = (check.containers_required_ready or ()) if check is not None else ()
    ready = {status.name: status.ready for status in pod.status.container_statuses}
    return all(ready.get(name, False) for name in required)
