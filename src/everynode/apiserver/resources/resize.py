"""Pod resize: changes cpu and memory of containers, never the QoS class."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import FieldError
from everynode.apiserver.resources.qos import qos_class

Object = dict[str, Any]


def restore_all_but_resources(new: Object, old: Object) -> None:
    """Reset everything but the containers' resources and resize policy."""
    if container_faults(new["spec"], old["spec"]):
        return
    spec = {**old["spec"]}
    for key in ("containers", "initContainers"):
        if key in spec:
            pairs = zip(new["spec"][key], old["spec"][key], strict=True)
            spec[key] = [_copy_resources(container, was) for container, was in pairs]
    meta = {**old["metadata"]}
    if "managedFields" in new["metadata"]:
        meta["managedFields"] = new["metadata"]["managedFields"]
    if spec != old["spec"]:
        meta["generation"] = meta.get("generation", 0) + 1
    new["metadata"], new["spec"], new["status"] = meta, spec, old.get("status", {})


def _copy_resources(new: Object, old: Object) -> Object:
    resized = {**old, "resources": new.get("resources") or {}}
    if "resizePolicy" in new:
        resized["resizePolicy"] = new["resizePolicy"]
    return resized


def resize_faults(new: Object, old: Object) -> list[FieldError]:
    """Return the faults of a resize."""
    after, before = new["spec"], old["spec"]
    faults = []
    qos = (old.get("status") or {}).get("qosClass") or qos_class(old)
    if qos_class(new) != qos:
        why = "Pod QOS Class may not change as a result of resizing"
        faults.append(FieldError("spec", f'Invalid value: "{qos}": {why}'))
    if not _supports_resize(old):
        why = "Pod running on node without support for resize"
        faults.append(FieldError("spec", f"Forbidden: {why}"))
    moved = container_faults(after, before)
    if moved:
        return [*faults, *moved]
    for key in ("initContainers", "containers"):
        pairs = zip(after.get(key) or [], before.get(key) or [], strict=True)
        for index, (container, was) in enumerate(pairs):
            faults += _resource_faults(container, was, f"spec.{key}[{index}].resources")
    return faults


def container_faults(after: Object, before: Object) -> list[FieldError]:
    """Return a fault if containers were added or removed."""
    for key in ("containers", "initContainers"):
        new, old = after.get(key) or [], before.get(key) or []
        if len(new) != len(old):
            message = "Forbidden: pod updates may not add or remove containers"
            return [FieldError(f"spec.{key}", message)]
    return []


def _supports_resize(pod: Object) -> bool:
    """Whether the kubelet supports resize: it then reports the resources of containers."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _resource_faults(new: Object, old: Object, path: str) -> list[FieldError]:
    faults = []
    for key in ("requests", "limits"):
        after = (new.get("resources") or {}).get(key) or {}
        before = (old.get("resources") or {}).get(key) or {}
        if any(resource not in after for resource in before):
            message = f"Forbidden: resource {key} cannot be removed"
            faults.append(FieldError(f"{path}.{key}", message))
        others = sorted({*after, *before} - {"cpu", "memory"})
        if any(after.get(resource) != before.get(resource) for resource in others):
            faults.append(
                FieldError("spec", "Forbidden: only cpu and memory resources are mutable")
            )
    return faults
