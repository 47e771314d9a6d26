"""What of a manifest a simulated cluster has to know, and what it ran before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

Object = dict[str, Any]

NAMESPACE: Final = "default"
BEFORE: Final = "the-one-before"  # the tag of images that are replaced
# What other objects of a cluster stand behind, and no rollout depends on.
_DROPPED: Final = (
    "serviceAccountName",
    "serviceAccount",
    "priority",
    "runtimeClassName",
    "resourceClaims",
)
_SYSTEM: Final = "system-"
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def prepare(manifest: Object) -> Object:
    """A copy that needs nothing but nodes: no accounts, priorities or devices of its own."""
    made = deepcopy(manifest)
    metadata = made["metadata"]
    kept = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
    made["metadata"] = {**kept, "namespace": NAMESPACE}
    made.pop("status", None)
    pod = _pod_spec(made)
    for name in _DROPPED:
        pod.pop(name, None)
    if not str(pod.get("priorityClassName", _SYSTEM)).startswith(_SYSTEM):
        pod.pop("priorityClassName")
    for container in _containers(pod):
        _drop_devices(container)
    return made


def before(manifest: Object) -> Object:
    """The same with other images: what the nodes may have run until now."""
    made = deepcopy(manifest)
    for container in _containers(_pod_spec(made)):
        if isinstance(container.get("image"), str):
            container["image"] = f"{repository(container['image'])}:{BEFORE}"
    return made


def installed(manifest: Object) -> Object:
    """The same as it is after its own rollout: nothing is held, all nodes have it."""
    made = deepcopy(manifest)
    strategy = made["spec"].get("updateStrategy")
    if isinstance(strategy, dict):
        made["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    made["spec"].pop("scaleStrategy", None)
    made["metadata"].pop("annotations", None)
    return made


def repository(image: str) -> str:
    """An image without its tag and its digest; a colon before the last slash is a port's."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}"


def _pod_spec(manifest: Object) -> Object:
    """The spec of the pods; empty where the manifest is not what it should be."""
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
