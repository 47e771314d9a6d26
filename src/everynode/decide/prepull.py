"""Which images are fetched ahead of an update, on which nodes, how many at a time.

A puller is a pod whose container has the workload's new image and a command that does not exist:
the kubelet pulls, the start fails, nothing runs. What became of it is noted on the node's daemon
pod, so that the puller can go at once and nobody pulls twice. Nothing here ever holds up a rollout.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.amount import parse_amount, scale
from everynode.api.daemonset import Amount, DaemonSet, Fault, UpdateType
from everynode.api.objects import ContainerStatus, Pod
from everynode.api.times import seconds
from everynode.decide.actions import Because, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.image import full_reference
from everynode.decide.patch import node_of, patch_pod
from everynode.decide.puller import Pull, build_puller, puller_name
from everynode.decide.revisions import Revision, read_number

PARALLELISM: Final = 1
TIMEOUT: Final = 300

# What a kubelet says while an image is not there; everything else comes after the pull.
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


class Settings(msgspec.Struct, frozen=True):
    """What the DaemonSet's annotations ask for."""

    parallelism: int = PARALLELISM
    timeout: int = TIMEOUT
    min_updated_ready: Amount | None = None
    faults: tuple[Fault, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """A node that may get the target later: its pod, None if it needs none, and its puller."""

    node: str
    pod: Pod | None = None
    puller: Pod | None = None


class Verdict(enum.Enum):
    """What became of a puller."""

    PULLING = "pulling"
    PULLED = "pulled"
    FAILED = "failed"


class Pulls(msgspec.Struct, frozen=True):
    """What is to be done about pulling now, and how far it has come."""

    actions: tuple[PodAction, ...] = ()
    done: int = 0
    total: int = 0
    wake_at: float | None = None  # when the next puller runs out of time


def read_settings(ds: DaemonSet, *, always: bool = False) -> Settings | None:
    """What is asked for, None if nothing is; malformed values are named and take their default."""
    annotations = ds.metadata.annotations
    if not always and keys.PREDOWNLOAD_PARALLELISM not in annotations:
        return None
    faults: list[Fault] = []
    return Settings(
        parallelism=_whole(annotations, keys.PREDOWNLOAD_PARALLELISM, PARALLELISM, faults),
        timeout=_whole(annotations, keys.PREDOWNLOAD_TIMEOUT, TIMEOUT, faults, least=1),
        min_updated_ready=_amount(annotations, keys.PREDOWNLOAD_MIN_UPDATED_READY, faults),
        faults=tuple(faults),
    )


def may_start(ds: DaemonSet, settings: Settings, *, desired: int, updated_ready: int) -> bool:
    """Whether it is time to pull: enough updated pods have proved the image, and others wait."""
    strategy = ds.strategy
    if strategy.type is UpdateType.ROLLING and desired:
        at_once = scale(strategy.max_unavailable, desired, round_up=True) >= desired
        if at_once and scale(strategy.partition, desired, round_up=False) == 0:
            return False  # every node is updated now: a puller would only compete
    least = settings.min_updated_ready
    return least is None or updated_ready >= scale(least, desired, round_up=True)


def plan_pulls(
    ds: DaemonSet,
    target: Revision,
    revisions: Mapping[str, Revision],
    places: Iterable[Place],
    *,
    settings: Settings,
    now: float,
    start: bool = True,
) -> Pulls:
    """Settle the pullers there are and start new ones, by node name descending as updates go.

    `revisions` are by hash, `start` is what `may_start` says.
    """
    ordered = sorted(places, key=lambda place: place.node, reverse=True)
    actions: list[PodAction] = []
    wakes: list[float] = []
    done = total = active = 0
    waiting: list[tuple[Place, tuple[Pull, ...]]] = []
    for place in ordered:
        pulls = pulls_for(place, target, revisions)
        noted = place.pod is not None and place.pod.metadata.annotations.pulled == target.hash
        total += bool(pulls)
        done += bool(pulls) and noted
        if place.puller is not None:
            settled = settle(ds, place, target, settings=settings, now=now)
            if settled is not None:
                actions.append(settled)
            elif not place.puller.terminating:
                wakes.append(deadline(place.puller, settings))
            active += settled is None or isinstance(settled, PatchPod)
        elif pulls and not noted:
            waiting.append((place, pulls))
    room = max(0, settings.parallelism - active) if start else 0
    actions += [_create(ds, target, place.node, pulls, settings) for place, pulls in waiting[:room]]
    return Pulls(tuple(actions), done, total, min(wakes, default=None))


def pulls_for(
    place: Place, target: Revision, revisions: Mapping[str, Revision]
) -> tuple[Pull, ...]:
    """The images that this node lacks for the target; none if it has the target, or no pod."""
    if place.pod is None or place.pod.hash == target.hash or place.pod.terminating:
        return ()
    old = revisions.get(place.pod.hash)
    return () if old is None else new_images(old.template, target.template)


@lru_cache(maxsize=128)
def new_images(old_template: bytes, new_template: bytes) -> tuple[Pull, ...]:
    """The images of the new template's containers that the old one does not use."""
    old, new = msgspec.json.decode(old_template), msgspec.json.decode(new_template)
    used = [full_reference(each["image"]) for each in _containers(old, init=True)]
    found: dict[str, Pull] = {}
    for container in _containers(new):
        image, policy = container["image"], str(container.get("imagePullPolicy") or "")
        if image and policy != "Never" and full_reference(image) not in used:
            found.setdefault(full_reference(image), Pull(image, policy or "IfNotPresent"))
    return tuple(found.values())


def settle(
    ds: DaemonSet, place: Place, target: Revision, *, settings: Settings, now: float
) -> PatchPod | DeletePod | None:
    """The next write about a node's puller: note its outcome, then delete it."""
    puller, pod = place.puller, place.pod
    if puller is None or puller.terminating:
        return None
    wanted = puller.name == puller_name(ds, place.node, target.hash)
    if pod is None or pod.terminating or pod.hash == target.hash or not wanted:
        return _delete(place.node, puller)
    if pod.metadata.annotations.pulled == target.hash:
        return _delete(place.node, puller)
    verdict, why = judge(puller, settings, now=now)
    if verdict is Verdict.PULLING:
        return None
    notice = None
    if verdict is Verdict.FAILED:
        text = f"could not fetch an image ahead on node {place.node}: {why}"
        notice = Notice("Warning", "FailedPreDownload", text)
    noted = {"annotations": {keys.PULLED: target.hash}}
    return patch_pod(pod, Because.PULLED, metadata=noted, notice=notice)


def judge(puller: Pod, settings: Settings, *, now: float) -> tuple[Verdict, str]:
    """What became of a puller, and in whose words."""
    statuses = puller.status.container_statuses
    asked = max(len(puller.spec.containers), 1)
    if len(statuses) >= asked and all(_has_image(each) for each in statuses):
        return Verdict.PULLED, ""
    trouble = next((_trouble(each) for each in statuses if _trouble(each)), "")
    if puller.finished:
        return Verdict.FAILED, trouble or puller.status.reason or "the puller was stopped"
    if now >= deadline(puller, settings):
        return Verdict.FAILED, trouble or f"not pulled within {settings.timeout} seconds"
    return Verdict.PULLING, trouble


def deadline(puller: Pod, settings: Settings) -> float:
    """When a puller is given up."""
    created = puller.metadata.creation_timestamp
    return (0.0 if created is None else seconds(created)) + settings.timeout


def _has_image(status: ContainerStatus) -> bool:
    if status.image_id or status.state.running is not None:
        return True
    ended, waiting = status.state.terminated, status.state.waiting
    if ended is not None:
        # So the kubelet calls a container that it never made.
        return ended.reason not in ("", "ContainerStatusUnknown")
    return waiting is not None and waiting.reason not in (*_BEFORE, *_TROUBLE)


def _trouble(status: ContainerStatus) -> str:
    waiting = status.state.waiting
    if waiting is None or waiting.reason not in _TROUBLE:
        return ""
    return f"{waiting.reason} {waiting.message}".strip()


def _create(
    ds: DaemonSet, target: Revision, node: str, pulls: tuple[Pull, ...], settings: Settings
) -> CreatePod:
    body = build_puller(ds, target, node, pulls=pulls, timeout=settings.timeout)
    return CreatePod(node, target.hash, body["metadata"]["name"], body, Because.PULL)


def _delete(node: str, puller: Pod) -> DeletePod:
    version = puller.metadata.resource_version
    return DeletePod(node or node_of(puller), puller.name, puller.uid, version, Because.PULLED)


def _containers(template: Mapping[str, Any], *, init: bool = False) -> list[dict[str, Any]]:
    spec = template.get("spec")
    lists = ("containers", "initContainers") if init else ("containers",)
    found = [spec.get(name) for name in lists] if isinstance(spec, dict) else []
    # What is none of these the API server will refuse; here it has no image.
    every = [each for some in found if isinstance(some, list) for each in some]
    return [each for each in every if isinstance(each, dict) and isinstance(each.get("image"), str)]


# --- Annotations -------------------------------------------------------------------------------


def _whole(
    annotations: Mapping[str, str], key: str, default: int, faults: list[Fault], *, least: int = 0
) -> int:
    text = annotations.get(key)
    if text is None:
        return default
    number = read_number(text)
    if number is not None and least <= number < 2**31:
        return number
    faults.append(_fault(key, text, f"is no whole number from {least}, {default} is used"))
    return default


def _amount(annotations: Mapping[str, str], key: str, faults: list[Fault]) -> Amount | None:
    text = annotations.get(key)
    if text is None:
        return None
    number = read_number(text)
    amount = parse_amount(text if number is None else number)
    if isinstance(amount, Amount):
        return amount
    faults.append(_fault(key, text, "is neither a number nor a percentage and is ignored"))
    return None


def _fault(key: str, text: str, problem: str) -> Fault:
    return Fault(f"metadata.annotations[{key}]", f"Invalid value: {text!r}: {problem}")
