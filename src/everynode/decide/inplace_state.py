"""How far an in-place update has come, as the pod's own annotation tells.

The annotation is OpenKruise's, so that either controller can take up what the other began. Two
fields of ours are added, which OpenKruise ignores: the container's id beside its image's.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import ContainerStatus, Pod, Resources
from everynode.api.quantity import QuantityError, parse_quantity
from everynode.api.times import TimeError, parse_time
from everynode.decide.gates import has_gate, is_open
from everynode.decide.image import same_image

Amounts = dict[str, str | int | float]

RESIZABLE: Final = ("cpu", "memory")
RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"


class LastStatus(msgspec.Struct, frozen=True, gc=False):
    """What ran in a container before its image was changed."""

    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Containers that were changed together, and when."""

    timestamp: str = ""
    containers: tuple[str, ...] | None = ()


class PreCheck(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which containers must be ready before the next ones are changed."""

    containers_required_ready: tuple[str, ...] | None = ()


class State(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The last in-place update of a pod."""

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


class Stage(enum.Enum):
    """What an update waits for."""

    RESIZE = "the resize is to be written"
    RESIZING = "the kubelet is resizing"
    RESTARTING = "containers are to run their new images"
    NEXT = "the images are to be written"
    RESIZED = "the resize is done and to be struck off"
    FINISHED = "nothing"


_decoder = msgspec.json.Decoder(State)


def read_state(pod: Pod) -> State | None:
    """The pod's record of its last in-place update; None if there is none or it is unreadable."""
    text = pod.metadata.annotations.inplace_state or pod.metadata.annotations.inplace_state_old
    if not text:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def state_fault(pod: Pod) -> str:
    """What is wrong with the record, for the node's reason; empty if nothing is."""
    text = pod.metadata.annotations.inplace_state or pod.metadata.annotations.inplace_state_old
    if not text:
        return ""
    try:
        _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"annotation {keys.INPLACE_STATE} cannot be read and is ignored: {error}"
    return ""


def write_state(state: State) -> str:
    """The annotation's text: empty parts left out, as OpenKruise does."""
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
    said = {name: value for name, value in optional.items() if value}
    return msgspec.json.encode({**always, **said}).decode()


def begun_at(state: State) -> float | None:
    """When the latest batch was written; None if that cannot be read."""
    batches = state.container_batches_record or ()
    try:
        return parse_time(batches[-1].timestamp if batches else state.update_timestamp)
    except TimeError:
        return None


def stage(pod: Pod, state: State | None) -> Stage:
    """What the recorded update waits for."""
    if state is None:
        return Stage.FINISHED
    wanted = state.next_container_resources or {}
    if wanted and not is_resize_written(pod, wanted):
        return Stage.RESIZE
    resized = bool(wanted) or (state.update_resources and is_shut(pod))
    if resized and not is_resize_reported(pod, wanted):
        return Stage.RESIZING
    if not are_images_running(pod, state):
        return Stage.RESTARTING
    if state.next_container_images:
        return Stage.NEXT if _is_checked(pod, state) else Stage.RESTARTING
    return Stage.RESIZED if wanted else Stage.FINISHED


def is_unfinished(pod: Pod) -> bool:
    """Whether an in-place update of the pod is still on its way."""
    return stage(pod, read_state(pod)) not in (Stage.FINISHED, Stage.RESIZED)


def is_shut(pod: Pod) -> bool:
    """Whether the pod is kept from being Ready for the sake of an in-place update."""
    return has_gate(pod, keys.INPLACE_UPDATE_READY) and not is_open(pod, keys.INPLACE_UPDATE_READY)


# --- Resources ---------------------------------------------------------------------------------


def is_resize_written(pod: Pod, wanted: dict[str, Resources]) -> bool:
    """Whether the pod's spec asks for these resources."""
    return all(
        container.name not in wanted or _covers(container.resources, wanted[container.name])
        for container in pod.spec.containers
    )


def is_resize_reported(pod: Pod, wanted: dict[str, Resources]) -> bool:
    """Whether the kubelet says that the containers have what their spec asks for."""
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
    """Why a resize is not under way: Infeasible, Deferred, or nothing."""
    pending = pod.condition(RESIZE_PENDING)
    if pending is not None and pending.status != "False":
        return pending.reason or "Deferred"
    # Before 1.33 the same is said in a field of its own.
    return pod.status.resize if pod.status.resize in (INFEASIBLE, "Deferred", "Proposed") else ""


def _only_resizable(resources: Resources) -> Resources:
    return Resources(
        requests={
            name: resources.requests[name] for name in RESIZABLE if name in resources.requests
        },
        limits={name: resources.limits[name] for name in RESIZABLE if name in resources.limits},
    )


def _covers(have: Resources, wanted: Resources) -> bool:
    """Whether everything that is wanted is had."""
    return _has(have.requests, wanted.requests) and _has(have.limits, wanted.limits)


def _has(have: Amounts, wanted: Amounts) -> bool:
    return all(name in have and same_amount(have[name], wanted[name]) for name in sorted(wanted))


def same_amount(one: str | float, other: str | float) -> bool:
    """Whether two quantities are the same, in whatever spelling."""
    try:
        return parse_quantity(one) == parse_quantity(other)
    except QuantityError:
        return one == other


# --- Images ------------------------------------------------------------------------------------


def are_images_running(pod: Pod, state: State) -> bool:
    """Whether every container whose image was changed has taken the change."""
    if not state.last_container_statuses:
        return True
    images = {container.name: container.image for container in pod.spec.containers}
    statuses = {status.name: status for status in pod.status.container_statuses}
    for name in sorted(state.last_container_statuses):
        if name not in images:
            continue
        status = statuses.get(name)
        if status is None or not _took(status, images[name], state.last_container_statuses[name]):
            return False
    return True


def _took(status: ContainerStatus, image: str, last: LastStatus) -> bool:
    """A new image id, or the new name; a new container, where both names are one image."""
    if not status.image_id:
        return False
    if status.image_id != last.image_id or same_image(status.image, image):
        return True
    return bool(last.container_id and status.container_id) and (
        status.container_id != last.container_id
    )


def _is_checked(pod: Pod, state: State) -> bool:
    check = state.pre_check_before_next
    required = (check.containers_required_ready or ()) if check is not None else ()
    ready = {status.name: status.ready for status in pod.status.container_statuses}
    return all(ready.get(name, False) for name in required)
