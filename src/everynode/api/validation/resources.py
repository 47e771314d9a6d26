"""Validation of resource requests and limits: known names, no request above its limit."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.quantity import Quantity, parse_quantity
from everynode.api.selector import label_key_errors
from everynode.api.validation.accessors import section, sections, text
from everynode.api.validation.field_errors import (
    AT_LEAST_0,
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    not_found,
    required,
    unsupported,
)

_NEEDS_LIMIT: Final = "Limit must be set for non overcommitable resources"
_STANDARD: Final = frozenset(
    {
        *("cpu", "memory", "ephemeral-storage", "storage", "pods", "services", "secrets"),
        *("resourcequotas", "replicationcontrollers", "configmaps", "persistentvolumeclaims"),
        *("requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage"),
        *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
        *("services.nodeports", "services.loadbalancers"),
    }
)
_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"


def check_resources(
    resources: Object, path: str, *, claims: list[str], of_pod: bool = False
) -> FieldErrors:
    """Errors in the requests, limits and claims of a container or of a pod as a whole."""
    limits, requests = section(resources, "limits") or {}, section(resources, "requests") or {}
    for name, value in sorted(limits.items()):
        yield from _check_amount(name, value, f"{path}.limits[{name}]", of_pod=of_pod)
    for name, value in sorted(requests.items()):
        yield from _check_amount(name, value, f"{path}.requests[{name}]", of_pod=of_pod)
        yield from _check_request(name, value, limits, path)
    named = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _check_claims(resources, path, claims)


def check_overhead(overhead: Object, path: str) -> FieldErrors:
    """Errors in what a runtime class adds to a pod."""
    for name, value in sorted(overhead.items()):
        yield from _check_amount(name, value, f"{path}.limits[{name}]", of_pod=False)


def _check_amount(name: str, value: Any, path: str, *, of_pod: bool) -> FieldErrors:
    yield from _check_name(name, path, of_pod=of_pod)
    quantity = parse_quantity(value)
    if quantity.nanos < 0:
        yield invalid(path, str(quantity), AT_LEAST_0)
    # Devices cannot be divided.
    if not _is_native(name) and quantity.milli % 1000:
        yield invalid(path, str(quantity), "must be an integer")
    if name.startswith(_HUGE_PAGES):
        size = parse_quantity(name.removeprefix(_HUGE_PAGES)).nanos if _has_size(name) else 0
        if size <= 0 or quantity.nanos < 0 or quantity.nanos % size:
            detail = f"{quantity} is not positive integer multiple of {name}"
            yield invalid(path, str(quantity), detail)


def _check_name(name: str, path: str, *, of_pod: bool) -> FieldErrors:
    huge = name.startswith(_HUGE_PAGES)
    wrong = list(invalid_each(path, name, label_key_errors(name)))
    if not wrong and "/" not in name and name not in _STANDARD and not huge:
        detail = "must be a standard resource type or fully qualified"
        wrong.append(invalid(path, name, detail))
    yield from wrong
    if of_pod:
        if not wrong and name not in _OF_PODS and not huge:
            yield unsupported(path, name, ("cpu", _HUGE_PAGES, "memory"))
    elif "/" not in name:
        if name not in _OF_CONTAINERS and not huge:
            yield invalid(path, name, "must be a standard resource for containers")
    elif not _is_native(name) and (
        name.startswith("requests.") or label_key_errors(f"requests.{name}")
    ):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _check_request(name: str, value: Any, limits: Object, path: str) -> FieldErrors:
    request = parse_quantity(value)
    overcommits = _is_native(name) and not name.startswith(_HUGE_PAGES)
    if limits.get(name) is None:
        if not overcommits:
            yield required(f"{path}.limits", _NEEDS_LIMIT)
        return
    limit = parse_quantity(limits[name])
    if request != limit and not overcommits:
        yield _above_limit(request, "must be equal to", name, limit, path)
    elif request > limit:
        yield _above_limit(request, "must be less than or equal to", name, limit, path)


def _above_limit(request: Quantity, reason: str, name: str, limit: Quantity, path: str) -> Any:
    return invalid(f"{path}.requests", str(request), f"{reason} {name} limit of {limit}")


def _check_claims(resources: Object, path: str, known: list[str]) -> FieldErrors:
    seen: list[str] = []
    for here, claim in sections(resources, "claims", path):
        name, request = text(claim, "name"), text(claim, "request")
        whole = f"{name}/{request}" if request else name
        if not name:
            yield required(here)
            continue
        if whole in seen or name in seen:
            yield duplicate(here, whole)
        seen.append(whole)
        if name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            yield not_found(
                here, name, f"must be one of the names in pod.spec.resourceClaims{listed}"
            )


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _has_size(name: str) -> bool:
    return name.removeprefix(_HUGE_PAGES)[:1].isdigit()
