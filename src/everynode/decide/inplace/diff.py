"""Template diff: whether a pod can be updated in place to another template, and what is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.defaults import default_pod
from everynode.api.objects import Resources
from everynode.api.template_equality import normalise
from everynode.decide.inplace.state import RESIZABLE, Amounts, same_quantity

Object = dict[str, Any]

_COPIED: Final = ("labels", "annotations", "finalizers")  # the template's metadata that pods get


class InPlaceChange(msgspec.Struct, frozen=True):
    """The changes that an in-place update writes; None removes a label or an annotation."""

    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    new_finalizers: tuple[str, ...] = ()
    old_finalizers: tuple[str, ...] = ()
    images: dict[str, str] = {}  # by container
    resources: dict[str, Resources] = {}  # by container, only what changes
    restarts: bool = False  # whether it restarts a container


class Recreate(msgspec.Struct, frozen=True):
    """The pod cannot be updated in place and has to be recreated, with the reason."""

    reason: str


@lru_cache(maxsize=128)
def classify(old_template: bytes, new_template: bytes) -> InPlaceChange | Recreate:
    """Return the changes that update a pod of the old template to the new one, or Recreate.

    A pod with the changes means the same as a pod that the new template creates (R6).
    """
    try:
        old, new = _decode(old_template), _decode(new_template)
    except (msgspec.DecodeError, RecursionError) as error:
        return Recreate(f"the template is malformed: {error}")
    if _asks_for_restart(old, new):
        return Recreate(f"the template asks for a restart by {keys.RESTARTED_AT}")
    change = _change(old, new)
    difference = _first_difference(
        _canonical(_with_change(_pod_of(old), change)), _canonical(_pod_of(new))
    )
    if difference:
        return Recreate(f"{difference} cannot be changed in place")
    if change.resources and _service_class(old) != _service_class(new):
        return Recreate("the quality of service class would change")
    stale = _stale_variable(new, change)
    return Recreate(stale) if stale else change


def _change(old: Object, new: Object) -> InPlaceChange:
    """Return every difference that an in-place update can write."""
    images, resources = _changed_images(old, new), _changed_resources(old, new)
    before, after = _finalizers(old), _finalizers(new)
    return InPlaceChange(
        labels=_changed_keys(old, new, "labels"),
        annotations=_changed_keys(old, new, "annotations"),
        new_finalizers=tuple(name for name in after if name not in before),
        old_finalizers=tuple(name for name in before if name not in after),
        images=images,
        resources=resources,
        restarts=bool(images) or bool(_restarted_by_resize(new, resources)),
    )


class _Source(msgspec.Struct, rename="camel"):
    field_ref: dict[str, str] | None = None
    resource_field_ref: dict[str, Any] | None = None


class _Variable(msgspec.Struct, rename="camel"):
    name: str = ""
    value_from: _Source | None = None


class _Resources(msgspec.Struct):
    requests: Amounts | None = None
    limits: Amounts | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str
    image: str | None = None
    restart_policy: str | None = None
    env: list[_Variable] | None = None
    resources: _Resources | None = None
    resize_policy: list[dict[str, str]] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Template(msgspec.Struct):
    """The fields that this module reads; decoding checks their types."""

    metadata: _Metadata | None = None
    spec: _Spec | None = None


def _decode(template: bytes) -> Object:
    msgspec.json.decode(template, type=_Template)
    return msgspec.json.decode(template, type=dict[str, Any])


# --- The pod afterwards ------------------------------------------------------------------------


def _asks_for_restart(old: Object, new: Object) -> bool:
    """Whether `kubectl rollout restart`, or a person in its way, marked the new template."""
    before, after = _metadata(old, "annotations"), _metadata(new, "annotations")
    return after.get(keys.RESTARTED_AT) not in (None, before.get(keys.RESTARTED_AT))


def _pod_of(template: Object) -> Object:
    """Return what pods get from a template, with the defaults that are set at their creation."""
    given = template.get("metadata") or {}
    metadata = {kind: given[kind] for kind in _COPIED if given.get(kind)}
    return default_pod({"metadata": metadata, "spec": template.get("spec") or {}})


def _canonical(pod: Object) -> Object:
    """Return a form of the pod that is equal for pods that mean the same."""
    normalised = normalise(pod)
    finalizers = (normalised.get("metadata") or {}).get("finalizers")
    if finalizers:
        normalised["metadata"]["finalizers"] = sorted(set(finalizers))
    return normalised


def _with_change(pod: Object, change: InPlaceChange) -> Object:
    """Return the pod after the update; defaults are not set again."""
    metadata: Object = {**pod["metadata"]}
    for kind, written in (("labels", change.labels), ("annotations", change.annotations)):
        merged = {**(metadata.get(kind) or {}), **written}
        metadata[kind] = {key: value for key, value in merged.items() if value is not None}
    kept = [name for name in metadata.get("finalizers") or () if name not in change.old_finalizers]
    metadata["finalizers"] = [*kept, *change.new_finalizers]
    containers = [_with_change_of(each, change) for each in _containers(pod)]
    return {"metadata": metadata, "spec": {**pod["spec"], "containers": containers}}


def _with_change_of(container: Object, change: InPlaceChange) -> Object:
    name = container["name"]
    changed = {**container, "image": change.images.get(name, container.get("image"))}
    moved = change.resources.get(name)
    if moved is not None:
        resources = container.get("resources") or {}
        changed["resources"] = {
            **resources,
            "limits": {**(resources.get("limits") or {}), **moved.limits},
            "requests": {**(resources.get("requests") or {}), **moved.requests},
        }
    return changed


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    """Return the path in the manifest at which two values first differ; empty if they are equal."""
    if one == other:
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({**one, **other}):
            found = _first_difference(
                one.get(key), other.get(key), f"{path}.{key}" if path else str(key)
            )
            if found:
                return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            found = _first_difference(left, right, f"{path}[{_name_of(left, right, index)}]")
            if found:
                return found
    return path


def _name_of(left: object, right: object, index: int) -> str:
    names = [each.get("name") for each in (left, right) if isinstance(each, dict)]
    same = len(names) == 2 and names[0] == names[1] and isinstance(names[0], str)
    return str(names[0]) if same else str(index)


# --- Fields that can change in place -----------------------------------------------------------


def _metadata(template: Object, kind: str) -> dict[str, str]:
    found: dict[str, str] = (template.get("metadata") or {}).get(kind) or {}
    return found


def _changed_keys(old: Object, new: Object, kind: str) -> dict[str, str | None]:
    before, after = _metadata(old, kind), _metadata(new, kind)
    gone: dict[str, str | None] = {key: None for key in sorted(before) if key not in after}
    return gone | {key: after[key] for key in sorted(after) if after[key] != before.get(key)}


def _finalizers(template: Object) -> list[str]:
    return (template.get("metadata") or {}).get("finalizers") or []


def _changed_images(old: Object, new: Object) -> dict[str, str]:
    before = {each["name"]: each.get("image") for each in _containers(old)}
    return {
        each["name"]: each["image"]
        for each in _containers(new)
        if each.get("image") and each["image"] != before.get(each["name"])
    }


def _changed_resources(old: Object, new: Object) -> dict[str, Resources]:
    """Return the amounts to resize, by container; none is added or removed."""
    changed: dict[str, Resources] = {}
    before = {each["name"]: _resizable(each) for each in _containers(old)}
    for container in _containers(new):
        name = container["name"]
        was, wanted = before.get(name, {}), _resizable(container)
        moved = {
            kind: {
                resource: value
                for resource, value in amounts.items()
                if resource in was.get(kind, {}) and not same_quantity(value, was[kind][resource])
            }
            for kind, amounts in wanted.items()
        }
        if moved["requests"] or moved["limits"]:
            changed[name] = Resources(requests=moved["requests"], limits=moved["limits"])
    return changed


def _resizable(container: Object) -> dict[str, Amounts]:
    """Return cpu and memory of a container; a missing request defaults to the limit."""
    resources = container.get("resources") or {}
    limits: Amounts = _only(resources.get("limits"))
    return {"limits": limits, "requests": {**limits, **_only(resources.get("requests"))}}


def _only(amounts: Mapping[str, str | int | float] | None) -> Amounts:
    return {name: (amounts or {})[name] for name in RESIZABLE if name in (amounts or {})}


def _restarted_by_resize(template: Object, resources: Mapping[str, Resources]) -> set[str]:
    """Return the containers that a resize restarts, by their resizePolicy."""
    return {
        container["name"]
        for container in _containers(template)
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
        and _is_resized(resources.get(container["name"]), policy.get("resourceName"))
    }


def _is_resized(moved: Resources | None, resource: str | None) -> bool:
    return moved is not None and (resource in moved.requests or resource in moved.limits)


def _service_class(template: Object) -> str:
    """Return the quality of service class of a pod that has resources."""
    spec = template.get("spec") or {}
    if spec.get("resources"):
        return "as the pod's own resources say"
    containers = [*_containers(template), *(spec.get("initContainers") or ())]
    for each in map(_resizable, containers):
        limits, requests = each["limits"], each["requests"]
        limited = sorted(limits) == sorted(RESIZABLE)
        if not limited or not all(same_quantity(requests[n], limits[n]) for n in RESIZABLE):
            return "Burstable"
    return "Guaranteed"


def _stale_variable(template: Object, change: InPlaceChange) -> str:
    """Return which variable would keep the old value of a label, an annotation or a resource.

    A container reads its variables when it starts. Empty if there is no such variable.
    """
    paths = [f"metadata.labels['{key}']" for key in change.labels]
    paths += [f"metadata.annotations['{key}']" for key in change.annotations]
    resized = _restarted_by_resize(template, change.resources)
    for container in _long_running(template):
        name = container["name"]
        if name in change.images:
            continue
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            path = (source.get("fieldRef") or {}).get("fieldPath")
            amount = source.get("resourceFieldRef") or {}
            if path not in paths and (name in resized or not _is_moved(amount, name, change)):
                continue
            where = f"variable {variable.get('name')} of container {name}"
            what = path if path in paths else amount.get("resource")
            return f"{where} is made of {what}, which would change"
    return ""


def _is_moved(amount: Mapping[str, Any], container: str, change: InPlaceChange) -> bool:
    """Whether a resourceFieldRef, such as limits.cpu, names an amount that is resized."""
    moved = change.resources.get(amount.get("containerName") or container)
    kind, _, resource = str(amount.get("resource") or "").partition(".")
    if moved is None:
        return False
    return resource in (moved.limits if kind == "limits" else moved.requests)


def _long_running(template: Object) -> Iterator[Object]:
    yield from _containers(template)
    for each in (template.get("spec") or {}).get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            yield each


def _containers(template: Object) -> list[Object]:
    containers: list[Object] = (template.get("spec") or {}).get("containers") or []
    return containers
