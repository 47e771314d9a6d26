"""Prepared manifest: a DaemonSet without what a simulated cluster lacks, and its predecessor."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from everynode.api.image import repository

Object = dict[str, Any]

NAMESPACE: Final = "default"
PREVIOUS_TAG: Final = "the-one-before"  # the tag of images that are replaced
# Fields that refer to other objects of a cluster, and do not affect a rollout.
_DROPPED_FIELDS: Final = (
    "serviceAccountName",
    "serviceAccount",
    "priority",
    "runtimeClassName",
    "resourceClaims",
)
_SYSTEM_CLASS_PREFIX: Final = "system-"
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def prepare_manifest(manifest: Object) -> Object:
    """A copy that needs nothing but nodes: no service account, priority class or devices."""
    prepared = deepcopy(manifest)
    metadata = prepared["metadata"]
    kept = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
    prepared["metadata"] = {**kept, "namespace": NAMESPACE}
    prepared.pop("status", None)
    pod = _pod_spec(prepared)
    for name in _DROPPED_FIELDS:
        pod.pop(name, None)
    if not str(pod.get("priorityClassName", _SYSTEM_CLASS_PREFIX)).startswith(_SYSTEM_CLASS_PREFIX):
        pod.pop("priorityClassName")
    for container in _containers(pod):
        _drop_devices(container)
    return prepared


def with_previous_images(manifest: Object) -> Object:
    """The same with other image tags: a stand-in for the version before."""
    prepared = deepcopy(manifest)
    for container in _containers(_pod_spec(prepared)):
        if isinstance(container.get("image"), str):
            container["image"] = f"{repository(container['image'])}:{PREVIOUS_TAG}"
    return prepared


def without_rollout_limits(manifest: Object) -> Object:
    """The same without partition, selector or pause, so that it is installed on all nodes."""
    prepared = deepcopy(manifest)
    strategy = prepared["spec"].get("updateStrategy")
    if isinstance(strategy, dict):
        prepared["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    prepared["spec"].pop("scaleStrategy", None)
    prepared["metadata"].pop("annotations", None)
    return prepared


def _pod_spec(manifest: Object) -> Object:
    """The spec of the pod template; empty if the manifest has another structure."""
    template = _dict(_dict(manifest.get("spec")).get("template"))
    return _dict(template.get("spec"))


def _containers(pod: Object) -> list[Object]:
    found = [*_list(pod.get("initContainers")), *_list(pod.get("containers"))]
    return [each for each in found if isinstance(each, dict)]


def _drop_devices(container: Object) -> None:
    resources = _dict(container.get("resources"))
    resources.pop("claims", None)
    for amounts in (_dict(resources.get("requests")), _dict(resources.get("limits"))):
        for name in [each for each in amounts if each not in _RESOURCES]:
            amounts.pop(name)


def _dict(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
