"""Template diff: whether a pod can be updated in place to another template, and what is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api.objects import Resources
from everynode.api.template_equality import normalise
from everynode.decide.inplace.state import RESIZABLE, Amounts, same_quantity

Object = dict[str, Any]

_NO_IMAGE: Final = "changeable"


class Change(msgspec.Struct, frozen=True):
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
def classify(old_template: bytes, new_template: bytes) -> Change | Recreate:
    """Return the changes that update a pod of the old template to the new one, or Recreate."""
    try:
        old, new = _decode(old_template), _decode(new_template)
    except (msgspec.DecodeError, RecursionError) as error:
        return Recreate(f"the template is malformed: {error}")
    difference = _first_difference(_unchangeable(old, new), _unchangeable(new, old))
    if difference:
        return Recreate(f"{difference} cannot be changed in place")
    images = _changed_images(old, new)
    resources = _changed_resources(old, new)
    if isinstance(resources, Recreate):
        return resources
    if resources and _service_class(old) != _service_class(new):
        return Recreate("the quality of service class would change")
    labels = _changed_keys(old, new, "labels")
    annotations = _changed_keys(old, new, "annotations")
    stale = _stale_variable(new, labels=labels, annotations=annotations, images=images)
    if stale:
        return Recreate(stale)
    before, after = _finalizers(old), _finalizers(new)
    return Change(
        labels=labels,
        annotations=annotations,
        new_finalizers=tuple(name for name in after if name not in before),
        old_finalizers=tuple(name for name in before if name not in after),
        images=images,
        resources=resources,
        restarts=bool(images) or _restarts(new, resources),
    )


class _Source(msgspec.Struct, rename="camel"):
    field_ref: dict[str, str] | None = None


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


# --- Fields that cannot change in place --------------------------------------------------------


def _unchangeable(template: Object, other: Object) -> Object:
    """Return the normalised template without the fields that can change in place."""
    others = [*_containers(other), *({} for _ in _containers(template))]
    pairs = zip(_containers(template), others, strict=False)
    fixed = [_fixed_part(mine, counterpart) for mine, counterpart in pairs]
    spec: Object = {**(template.get("spec") or {}), "containers": fixed}
    # Only labels, annotations and finalizers of the template's metadata are copied to pods, and
    # all three can change in place.
    return normalise({**template, "metadata": {}, "spec": spec})


def _fixed_part(container: Object, other: Object) -> Object:
    fixed = {**container, "image": _NO_IMAGE}
    if "imagePullPolicy" not in container and "imagePullPolicy" in other:
        # One template leaves out imagePullPolicy. Its default depends on the real image.
        made = normalise({"spec": {"containers": [container]}})["spec"]["containers"][0]
        fixed["imagePullPolicy"] = made.get("imagePullPolicy")
    resources = container.get("resources")
    if isinstance(resources, dict):
        fixed["resources"] = {
            kind: _without_resizable(amounts) if kind in ("requests", "limits") else amounts
            for kind, amounts in resources.items()
        }
    return fixed


def _without_resizable(amounts: Amounts | None) -> Amounts:
    return {name: value for name, value in (amounts or {}).items() if name not in RESIZABLE}


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


def _changed_keys(old: Object, new: Object, kind: str) -> dict[str, str | None]:
    before: dict[str, str] = (old.get("metadata") or {}).get(kind) or {}
    after: dict[str, str] = (new.get("metadata") or {}).get(kind) or {}
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


def _changed_resources(old: Object, new: Object) -> dict[str, Resources] | Recreate:
    """Return the resources to resize by container; Recreate if one is added or removed."""
    changed: dict[str, Resources] = {}
    before = {each["name"]: _resizable(each) for each in _containers(old)}
    for container in _containers(new):
        name = container["name"]
        was, is_ = before[name], _resizable(container)
        for kind in ("requests", "limits"):
            if sorted(was[kind]) != sorted(is_[kind]):
                return Recreate(f"{kind} of container {name} would appear or vanish")
        moved = {
            kind: {r: v for r, v in is_[kind].items() if not same_quantity(v, was[kind][r])}
            for kind in ("requests", "limits")
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


def _restarts(template: Object, resources: Mapping[str, Resources]) -> bool:
    for container in _containers(template):
        moved = resources.get(container["name"])
        if moved is None:
            continue
        for policy in container.get("resizePolicy") or ():
            resized = policy.get("resourceName")
            if policy.get("restartPolicy") == "RestartContainer" and (
                resized in moved.requests or resized in moved.limits
            ):
                return True
    return False


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


def _stale_variable(
    template: Object,
    *,
    labels: Mapping[str, object],
    annotations: Mapping[str, object],
    images: Mapping[str, str],
) -> str:
    """Return which variable from a fieldRef would keep the old value of changed metadata.

    A container reads its variables when it starts. Empty if there is no such variable.
    """
    paths = [f"metadata.labels['{key}']" for key in labels]
    paths += [f"metadata.annotations['{key}']" for key in annotations]
    if not paths:
        return ""
    for container in _long_running(template):
        if container["name"] in images:
            continue
        for variable in container.get("env") or ():
            source = (variable.get("valueFrom") or {}).get("fieldRef") or {}
            if source.get("fieldPath") in paths:
                where = f"variable {variable.get('name')} of container {container['name']}"
                return f"{where} is made of {source['fieldPath']}, which would change"
    return ""


def _long_running(template: Object) -> Iterator[Object]:
    yield from _containers(template)
    for each in (template.get("spec") or {}).get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            yield each


def _containers(template: Object) -> list[Object]:
    containers: list[Object] = (template.get("spec") or {}).get("containers") or []
    return containers
