"""Resizing a pod: only cpu and memory of its containers, never the quality of service."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import Fault
from everynode.cluster.qos import qos_class

Object = dict[str, Any]


def keep_all_but_resources(new: Object, old: Object) -> None:
    """A resize changes nothing else."""
    if container_faults(new["spec"], old["spec"]):
        return
    spec = {**old["spec"]}
    for key in ("containers", "initContainers"):
        if key in spec:
            pairs = zip(new["spec"][key], old["spec"][key], strict=True)
            spec[key] = [_resized(container, was) for container, was in pairs]
    meta = {**old["metadata"]}
    if "managedFields" in new["metadata"]:
        meta["managedFields"] = new["metadata"]["managedFields"]
    if spec != old["spec"]:
        meta["generation"] = meta.get("generation", 0) + 1
    new["metadata"], new["spec"], new["status"] = meta, spec, old.get("status", {})


def _resized(new: Object, old: Object) -> Object:
    made = {**old, "resources": new.get("resources") or {}}
    if "resizePolicy" in new:
        made["resizePolicy"] = new["resizePolicy"]
    return made


def resize_faults(new: Object, old: Object) -> list[Fault]:
    """Why a pod cannot be resized like this."""
    after, before = new["spec"], old["spec"]
    faults = []
    quality = (old.get("status") or {}).get("qosClass") or qos_class(old)
    if qos_class(new) != quality:
        why = "Pod QOS Class may not change as a result of resizing"
        faults.append(Fault("spec", f'Invalid value: "{quality}": {why}'))
    if not _resizable(old):
        why = "Pod running on node without support for resize"
        faults.append(Fault("spec", f"Forbidden: {why}"))
    moved = container_faults(after, before)
    if moved:
        return [*faults, *moved]
    for key in ("initContainers", "containers"):
        pairs = zip(after.get(key) or [], before.get(key) or [], strict=True)
        for index, (container, was) in enumerate(pairs):
            faults += _resource_faults(container, was, f"spec.{key}[{index}].resources")
    return faults


def container_faults(after: Object, before: Object) -> list[Fault]:
    """Containers come and go only with the pod."""
    for key in ("containers", "initContainers"):
        new, old = after.get(key) or [], before.get(key) or []
        if len(new) != len(old):
            message = "Forbidden: pod updates may not add or remove containers"
            return [Fault(f"spec.{key}", message)]
    return []


def _resizable(pod: Object) -> bool:
    """A kubelet that can resize says what its containers really have."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _resource_faults(new: Object, old: Object, path: str) -> list[Fault]:
    faults = []
    for key in ("requests", "limits"):
        after = (new.get("resources") or {}).get(key) or {}
        before = (old.get("resources") or {}).get(key) or {}
        if any(resource not in after for resource in before):
            message = f"Forbidden: resource {key} cannot be removed"
            faults.append(Fault(f"{path}.{key}", message))
        others = sorted({*after, *before} - {"cpu", "memory"})
        if any(after.get(resource) != before.get(resource) for resource in others):
            faults.append(Fault("spec", "Forbidden: only cpu and memory resources are mutable"))
    return faults
