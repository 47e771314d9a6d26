"""Pre-pulling: pulls images ahead of an update. Decides which images, on which nodes, how many.

A pull pod has a container with the new image and a command that does not exist. The kubelet pulls
the image, the start fails, and nothing runs. The result is written to an annotation of the node's
daemon pod, so that the pull pod can be deleted at once and no image is pulled twice. A rollout
never waits for pull pods.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, FieldError, IntOrPercent, UpdateStrategyType
from everynode.api.image import full_reference
from everynode.api.int_or_percent import parse_int_or_percent, scaled_value
from everynode.api.objects import ContainerStatus, Pod
from everynode.api.times import seconds
from everynode.decide.actions import Cause, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.pods.patch import patch_pod
from everynode.decide.pods.pull_pod import ImagePull, build_pull_pod, pull_pod_name
from everynode.decide.revisions.target import Revision, read_number

PARALLELISM: Final = 1
PULL_TIMEOUT: Final = 300

# Waiting reasons of the kubelet before and during the pull; all others come after it or are below.
_BEFORE: Final = ("", "ContainerCreating", "PodInitializing")
_TROUBLE: Final = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "ErrImageNeverPull",
    "InvalidImageName",
    "RegistryUnavailable",
    "SignatureValidationFailed",
)


class PullSettings(msgspec.Struct, frozen=True):
    """The pre-pull settings in the DaemonSet's annotations."""

    parallelism: int = PARALLELISM
    timeout: int = PULL_TIMEOUT
    min_updated_ready: IntOrPercent | None = None
    faults: tuple[FieldError, ...] = ()


class PullNode(msgspec.Struct, frozen=True):
    """A node that may get the target later, its daemon pod and its pull pod.

    `pod` is None if the node needs no images.
    """

    node: str
    pod: Pod | None = None
    pull_pod: Pod | None = None


class PullResult(enum.Enum):
    """The result of a pull pod."""

    PULLING = "pulling"
    PULLED = "pulled"
    FAILED = "failed"


class PullPlan(msgspec.Struct, frozen=True):
    """The actions on pull pods to take now, and how many nodes have their images."""

    actions: tuple[PodAction, ...] = ()
    done: int = 0
    total: int = 0
    wake_at: float | None = None  # when the next pull pod times out


def read_pull_settings(ds: DaemonSet, *, always: bool = False) -> PullSettings | None:
    """Return the settings; None if pre-pulling is off.

    An invalid value is reported in `faults`, and its default is used.
    """
    annotations = ds.metadata.annotations
    if not always and keys.PREDOWNLOAD_PARALLELISM not in annotations:
        return None
    faults: list[FieldError] = []
    return PullSettings(
        parallelism=_read_count(annotations, keys.PREDOWNLOAD_PARALLELISM, PARALLELISM, faults),
        timeout=_read_count(annotations, keys.PREDOWNLOAD_TIMEOUT, PULL_TIMEOUT, faults, least=1),
        min_updated_ready=_read_amount(annotations, keys.PREDOWNLOAD_MIN_UPDATED_READY, faults),
        faults=tuple(faults),
    )


def may_start(ds: DaemonSet, settings: PullSettings, *, desired: int, updated_ready: int) -> bool:
    """Whether to pull: enough updated pods are Ready, and not all nodes update at once."""
    strategy = ds.strategy
    if strategy.type is UpdateStrategyType.ROLLING and desired:
        at_once = scaled_value(strategy.max_unavailable, desired, round_up=True) >= desired
        if at_once and scaled_value(strategy.partition, desired, round_up=False) == 0:
            return False  # every node is updated now: a pull pod would only delay the update
    least = settings.min_updated_ready
    return least is None or updated_ready >= scaled_value(least, desired, round_up=True)


def plan_pulls(
    ds: DaemonSet,
    target: Revision,
    revisions: Mapping[str, Revision],
    places: Iterable[PullNode],
    *,
    settings: PullSettings,
    now: float,
    start: bool = True,
    by_scheduler: bool = True,
) -> PullPlan:
    """Finish existing pull pods and create new ones, by node name descending like updates.

    `revisions` are by hash. `start` is the result of `may_start`.
    """
    ordered = sorted(places, key=lambda place: place.node, reverse=True)
    wanting = [(each, pulls) for each in ordered if (pulls := pulls_for(each, target, revisions))]
    existing = [each for each in ordered if each.pull_pod is not None]
    writes = [next_pull_write(ds, each, target, settings=settings, now=now) for each in existing]
    # A pull pod whose result is written down is deleted by the next plan, and counts until then.
    active = sum(not isinstance(write, DeletePod) for write in writes)
    room = max(0, settings.parallelism - active) if start else 0
    waiting = [
        (each.node, pulls)
        for each, pulls in wanting
        if each.pull_pod is None and not _is_pulled(each, target)
    ]
    creates = [
        _create(ds, target, node, pulls, timeout=settings.timeout, by_scheduler=by_scheduler)
        for node, pulls in waiting[:room]
    ]
    pulling = [
        each.pull_pod
        for each, write in zip(existing, writes, strict=True)
        if write is None and each.pull_pod is not None and not each.pull_pod.terminating
    ]
    return PullPlan(
        actions=(*(write for write in writes if write is not None), *creates),
        done=sum(_is_pulled(each, target) for each, _ in wanting),
        total=len(wanting),
        wake_at=min((deadline(each, settings) for each in pulling), default=None),
    )


def _is_pulled(place: PullNode, target: Revision) -> bool:
    return place.pod is not None and place.pod.metadata.annotations.pulled == target.hash


def pulls_for(
    place: PullNode, target: Revision, revisions: Mapping[str, Revision]
) -> tuple[ImagePull, ...]:
    """Return the images of the target that this node lacks; none if it is updated or has no pod."""
    if place.pod is None or place.pod.hash == target.hash or place.pod.terminating:
        return ()
    old = revisions.get(place.pod.hash)
    return () if old is None else new_images(old.template, target.template)


@lru_cache(maxsize=128)
def new_images(old_template: bytes, new_template: bytes) -> tuple[ImagePull, ...]:
    """Return the images of the new template's containers that the old template does not use."""
    old, new = msgspec.json.decode(old_template), msgspec.json.decode(new_template)
    used = [full_reference(each["image"]) for each in _containers(old, init=True)]
    found: dict[str, ImagePull] = {}
    for container in _containers(new):
        image, policy = container["image"], str(container.get("imagePullPolicy") or "")
        if image and policy != "Never" and full_reference(image) not in used:
            found.setdefault(full_reference(image), ImagePull(image, policy or "IfNotPresent"))
    return tuple(found.values())


def next_pull_write(
    ds: DaemonSet, place: PullNode, target: Revision, *, settings: PullSettings, now: float
) -> PatchPod | DeletePod | None:
    """Return the next write for a node's pull pod: record its result, then delete it."""
    pull_pod, pod = place.pull_pod, place.pod
    if pull_pod is None or pull_pod.terminating:
        return None
    wanted = pull_pod.name == pull_pod_name(ds, place.node, target.hash)
    if pod is None or pod.terminating or pod.hash == target.hash or not wanted:
        return _delete(place.node, pull_pod)
    if pod.metadata.annotations.pulled == target.hash:
        return _delete(place.node, pull_pod)
    verdict, why = pull_result(pull_pod, settings, now=now)
    if verdict is PullResult.PULLING:
        return None
    notice = None
    if verdict is PullResult.FAILED:
        text = f"could not fetch an image ahead on node {place.node}: {why}"
        notice = Notice("Warning", "FailedPreDownload", text)
    noted = {"annotations": {keys.PULLED: target.hash}}
    return patch_pod(pod, Cause.PULLED, metadata=noted, notice=notice)


def pull_result(pull_pod: Pod, settings: PullSettings, *, now: float) -> tuple[PullResult, str]:
    """Return the result of a pull pod and the kubelet's message about a failure."""
    statuses = pull_pod.status.container_statuses
    expected = max(len(pull_pod.spec.containers), 1)
    if len(statuses) >= expected and all(_has_image(each) for each in statuses):
        return PullResult.PULLED, ""
    trouble = next((_trouble(each) for each in statuses if _trouble(each)), "")
    if pull_pod.finished:
        return PullResult.FAILED, trouble or pull_pod.status.reason or "the pull pod was stopped"
    if now >= deadline(pull_pod, settings):
        return PullResult.FAILED, trouble or f"not pulled within {settings.timeout} seconds"
    return PullResult.PULLING, trouble


def deadline(pull_pod: Pod, settings: PullSettings) -> float:
    """Return when a pull pod times out."""
    created = pull_pod.metadata.creation_timestamp
    return (0.0 if created is None else seconds(created)) + settings.timeout


def _has_image(status: ContainerStatus) -> bool:
    if status.image_id or status.state.running is not None:
        return True
    ended, waiting = status.state.terminated, status.state.waiting
    if ended is not None:
        # The kubelet uses these reasons for a container that it never created.
        return ended.reason not in ("", "ContainerStatusUnknown")
    return waiting is not None and waiting.reason not in (*_BEFORE, *_TROUBLE)


def _trouble(status: ContainerStatus) -> str:
    waiting = status.state.waiting
    if waiting is None or waiting.reason not in _TROUBLE:
        return ""
    return f"{waiting.reason} {waiting.message}".strip()


def _create(
    ds: DaemonSet,
    target: Revision,
    node: str,
    pulls: tuple[ImagePull, ...],
    *,
    timeout: int,
    by_scheduler: bool,
) -> CreatePod:
    body = build_pull_pod(ds, target, node, pulls=pulls, timeout=timeout, by_scheduler=by_scheduler)
    return CreatePod(node, target.hash, body["metadata"]["name"], body, Cause.PULL)


def _delete(node: str, pull_pod: Pod) -> DeletePod:
    version = pull_pod.metadata.resource_version
    return DeletePod(node or pull_pod.node, pull_pod.name, pull_pod.uid, version, Cause.PULLED)


def _containers(template: Mapping[str, Any], *, init: bool = False) -> list[dict[str, Any]]:
    spec = template.get("spec")
    lists = ("containers", "initContainers") if init else ("containers",)
    found = [spec.get(name) for name in lists] if isinstance(spec, dict) else []
    # The API server refuses containers of any other form; they are left out here.
    every = [each for some in found if isinstance(some, list) for each in some]
    return [each for each in every if isinstance(each, dict) and isinstance(each.get("image"), str)]


# --- Annotations -------------------------------------------------------------------------------


def _read_count(
    annotations: Mapping[str, str],
    key: str,
    default: int,
    faults: list[FieldError],
    *,
    least: int = 0,
) -> int:
    text = annotations.get(key)
    if text is None:
        return default
    number = read_number(text)
    if number is not None and least <= number < 2**31:
        return number
    faults.append(_fault(key, text, f"is no whole number from {least}, {default} is used"))
    return default


def _read_amount(
    annotations: Mapping[str, str], key: str, faults: list[FieldError]
) -> IntOrPercent | None:
    text = annotations.get(key)
    if text is None:
        return None
    number = read_number(text)
    amount = parse_int_or_percent(text if number is None else number)
    if isinstance(amount, IntOrPercent):
        return amount
    faults.append(_fault(key, text, "is neither a number nor a percentage and is ignored"))
    return None


def _fault(key: str, text: str, problem: str) -> FieldError:
    return FieldError(f"metadata.annotations[{key}]", f"Invalid value: {text!r}: {problem}")
