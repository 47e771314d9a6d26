"""Whether a DaemonSet of either kind is right, and whether it may be changed like this."""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.daemonset import Fault
from everynode.api.defaults import default_daemonset, default_template
from everynode.api.types import ADVANCED_DAEMONSET
from everynode.api.validation import advanced, native
from everynode.api.validation.advanced import without_nulls
from everynode.api.validation.faults import (
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TYPE_INVALID,
    Faults,
    Object,
    duplicate,
    forbidden,
    required,
    unsupported,
)
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.api.validation.reading import section, sections, text
from everynode.api.validation.shape import check_advanced_shape, check_shape
from everynode.api.validation.template import check_template

_NATIVE: Final = "io.k8s.api.apps.v1.DaemonSet"
# After these the API server does not ask the rules any more, and says so.
_STOPPING: Final = (NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID)
_NOT_ALL: Final = Fault(
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_VERSIONS: Final = (keys.APPS_V1, keys.V1BETA1, keys.V1ALPHA1)


def validate_daemonset(daemonset: object) -> list[Fault]:
    """Everything wrong with a new DaemonSet of either kind; empty if nothing is."""
    wrong = _check_identity(daemonset)
    if wrong or not isinstance(daemonset, dict):
        return wrong
    if daemonset["apiVersion"] == keys.APPS_V1:
        return list(check_shape(daemonset, _NATIVE)) or [
            *check_metadata(section(daemonset, "metadata") or {}),
            *_check_native(default_daemonset(daemonset)),
        ]
    bare = without_nulls(daemonset)
    return _check_schema(bare) or [
        *check_metadata(section(bare, "metadata") or {}, custom=True),
        *_check_advanced(bare),
    ]


def validate_update(old: Object, new: object) -> list[Fault]:
    """Everything wrong with putting the new DaemonSet in the place of the old one."""
    wrong = _check_identity(new)
    if wrong or not isinstance(new, dict):
        return wrong
    before, after = section(old, "metadata") or {}, section(new, "metadata") or {}
    if new["apiVersion"] == keys.APPS_V1:
        return list(check_shape(new, _NATIVE)) or [
            *check_metadata_update(before, after),
            *native.check_selector_unchanged(
                section(old, "spec") or {}, section(new, "spec") or {}
            ),
            *_check_native(default_daemonset(new)),
        ]
    bare = without_nulls(new)
    return _check_schema(bare) or [
        *check_metadata_update(before, after, custom=True),
        *advanced.check_selector_unchanged(old, bare),
        *_check_advanced(bare),
    ]


def validate_advanced_on_server(new: Object, old: Object | None = None) -> list[Fault]:
    """What an API server that has only the definition refuses, in its order.

    Faults of the template are not among it: they are found when a pod is made.
    """
    bare = without_nulls(new)
    wrong = _check_schema(bare)
    if any(fault.reason in _STOPPING for fault in wrong):
        return [*wrong, _NOT_ALL]
    changed = advanced.check_selector_unchanged(old, bare) if old is not None else ()
    return wrong or [*advanced.check_own_fields(bare), *changed]


def _check_identity(daemonset: object) -> list[Fault]:
    if not isinstance(daemonset, dict):
        return list(check_shape(daemonset, _NATIVE))
    version, kind = daemonset.get("apiVersion"), daemonset.get("kind")
    if version not in _VERSIONS:
        return [unsupported("apiVersion", version, _VERSIONS)]
    return [] if kind == keys.KIND else [unsupported("kind", kind, (keys.KIND,))]


def _check_native(daemonset: Object) -> Faults:
    spec = section(daemonset, "spec") or {}
    yield from native.check_labels_selected(spec)
    yield from native.check_native_fields(spec)
    yield from _check_template(section(spec, "template") or {})


def _check_advanced(daemonset: Object) -> Faults:
    yield from advanced.check_own_fields(daemonset)
    yield from _check_template(default_template(daemonset["spec"]["template"]))


def _check_template(template: Object) -> Faults:
    yield from check_template(template, "spec.template")
    yield from _check_life(template)


# --- What the schema of the Advanced kind refuses before any rule is asked ----------------------


def _check_schema(daemonset: Object) -> list[Fault]:
    # A write of the DaemonSet leaves the status alone, so nobody looks at it.
    written = {name: value for name, value in daemonset.items() if name != "status"}
    wrong = list(check_advanced_shape(written, ADVANCED_DAEMONSET))
    return wrong or [*_check_restart_policy(daemonset), *_check_named_lists(daemonset)]


def _pod_spec(daemonset: Object) -> Object:
    template: Object = daemonset["spec"]["template"]
    return section(template, "spec") or {}


def _check_restart_policy(daemonset: Object) -> Faults:
    policy = _pod_spec(daemonset).get("restartPolicy")
    if policy is not None and policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _check_named_lists(daemonset: Object) -> Faults:
    """Lists that are merged by name when applied: each item has one, and its own."""
    spec = _pod_spec(daemonset)
    for kind in ("containers", "initContainers", "volumes"):
        seen: list[str] = []
        for here, item in sections(spec, kind, "spec.template.spec"):
            name = item.get("name")
            if name is None:
                yield required(f"{here}.name")
            elif name in seen:
                yield duplicate(here, {"name": name})
            else:
                seen.append(name)


# --- What no pod of a DaemonSet may do ----------------------------------------------------------


def _check_life(template: Object) -> Faults:
    """End, that is."""
    spec, path = section(template, "spec") or {}, "spec.template.spec"
    policy = text(spec, "restartPolicy")
    if policy != "Always":
        yield unsupported(f"{path}.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in DaemonSet is not Supported"
        yield forbidden(f"{path}.activeDeadlineSeconds", detail)
