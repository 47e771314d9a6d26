"""QoS class of a pod, from the requests and limits of its containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from everynode.api.quantity import QuantityError, parse_quantity

Object = dict[str, Any]

_RESOURCES: Final = ("cpu", "memory")


def qos_class(pod: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort."""
    spec = pod.get("spec") or {}
    pod_level = spec.get("resources") or {}
    if any(pod_level.get(key) for key in ("requests", "limits")):
        return _class_of([pod_level])
    return _class_of([c.get("resources") or {} for c in _containers(spec)])


def _containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _class_of(all_resources: list[Object]) -> str:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for resources in all_resources:
        requested, capped = _amounts(resources, "requests"), _amounts(resources, "limits")
        for name in requested:
            requests[name] = requests.get(name, 0) + requested[name]
        for name in capped:
            limits[name] = limits.get(name, 0) + capped[name]
        guaranteed = guaranteed and len(capped) == len(_RESOURCES)
    if not requests and not limits:
        return "BestEffort"
    same = all(requests.get(name) == limits[name] for name in limits)
    return "Guaranteed" if guaranteed and same and len(requests) == len(limits) else "Burstable"


def _amounts(resources: Object, key: str) -> dict[str, int]:
    found = {}
    for name, value in (resources.get(key) or {}).items():
        if name in _RESOURCES:
            try:
                amount = parse_quantity(value).nanos
            except QuantityError:
                continue
            if amount > 0:
                found[name] = amount
    return found
