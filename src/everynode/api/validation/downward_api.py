"""Validation of the downward API: references to fields and resources of the pod."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.quantity import parse_quantity
from everynode.api.selector import label_key_errors
from everynode.api.validation.accessors import text
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    invalid,
    invalid_each,
    required,
    unsupported,
)

# Sorted, because the API server lists them so.
IN_VARIABLES: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
IN_FILES: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN: Final = frozenset(
    (*IN_VARIABLES, *IN_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPT: Final = re.compile(r"(.+)\['(.+)'\]")
_SIZES: Final = ("1", *(f"1{unit}" for unit in "kMGTPE"), *(f"1{unit}i" for unit in "KMGTPE"))
_RESOURCE_NAMES: Final = {
    "memory": "memory",
    "ephemeral-storage": "local ephemeral storage",
    "hugepages": "hugepages",
}


def check_field_reference(reference: Object, path: str, known: tuple[str, ...]) -> FieldErrors:
    """Errors in a reference to a field of the pod."""
    version, field = text(reference, "apiVersion"), text(reference, "fieldPath")
    if not version:
        yield required(f"{path}.apiVersion")
        return
    if not field:
        yield required(f"{path}.fieldPath")
        return
    if version != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {version}"
        yield invalid(f"{path}.fieldPath", field, detail)
        return
    subscripted = _SUBSCRIPT.fullmatch(field)
    if subscripted is not None:
        yield from _check_subscript(field, subscripted, path)
        return
    name = "spec.nodeName" if field == "spec.host" else field
    if name not in _KNOWN:
        detail = f"error converting fieldPath: field label not supported: {field}"
        yield invalid(f"{path}.fieldPath", field, detail)
    elif name not in known:
        yield unsupported(f"{path}.fieldPath", name, known)


def _check_subscript(field: str, parsed: re.Match[str], path: str) -> FieldErrors:
    of, key = parsed[1], parsed[2]
    if of == "metadata.annotations":
        yield from invalid_each(path, key.lower(), label_key_errors(key.lower()))
    elif of == "metadata.labels":
        yield from invalid_each(path, key, label_key_errors(key))
    else:
        detail = f"error converting fieldPath: field label does not support subscript: {field}"
        yield invalid(f"{path}.fieldPath", field, detail)


def check_resource_reference(reference: Object, path: str, *, in_file: bool) -> FieldErrors:
    """Errors in a reference to a request or a limit of a container."""
    resource = text(reference, "resource")
    if in_file and not text(reference, "containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported(f"{path}.resource", resource, _RESOURCES)
    divisor = parse_quantity(reference.get("divisor") or "0")
    if not divisor.nanos:
        return
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if kind == "cpu":
        if str(divisor) not in ("1m", "1"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            yield invalid(f"{path}.divisor", resource, detail)
    elif kind in _RESOURCE_NAMES and str(divisor) not in _SIZES:
        sizes = ", ".join(_SIZES)
        detail = (
            f"only divisor's values {sizes} are supported with the {_RESOURCE_NAMES[kind]} resource"
        )
        yield invalid(f"{path}.divisor", resource, detail)
