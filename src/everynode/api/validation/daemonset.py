"""Validation of DaemonSets of both kinds, when created and when updated."""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.daemonset import FieldError
from everynode.api.defaults import default_daemonset, default_template
from everynode.api.nulls import drop_nulls
from everynode.api.types import ADVANCED_DAEMONSET, NATIVE_DAEMONSET
from everynode.api.validation import advanced, native
from everynode.api.validation.accessors import section, sections, text
from everynode.api.validation.field_errors import (
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TYPE_INVALID,
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    required,
    unsupported,
)
from everynode.api.validation.field_types import check_advanced_field_types, check_field_types
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.api.validation.template import check_template

# After an error with one of these reasons the API server skips the CEL rules, and says so.
_SCHEMA_REASONS: Final = (NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID)
_RULES_SKIPPED: Final = FieldError(
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_VERSIONS: Final = (keys.APPS_V1, keys.V1BETA1, keys.V1ALPHA1)


def validate_daemonset(daemonset: object) -> list[FieldError]:
    """All errors of a new DaemonSet of either kind."""
    wrong = _check_identity(daemonset)
    if wrong or not isinstance(daemonset, dict):
        return wrong
    if daemonset["apiVersion"] == keys.APPS_V1:
        return list(check_field_types(daemonset, NATIVE_DAEMONSET)) or [
            *check_metadata(section(daemonset, "metadata") or {}),
            *_check_native(default_daemonset(daemonset)),
        ]
    bare = drop_nulls(daemonset)
    return _check_schema(bare) or [
        *check_metadata(section(bare, "metadata") or {}, custom=True),
        *_check_advanced(bare),
    ]


def validate_update(old: Object, new: object) -> list[FieldError]:
    """All errors of an update of a DaemonSet."""
    wrong = _check_identity(new)
    if wrong or not isinstance(new, dict):
        return wrong
    before, after = section(old, "metadata") or {}, section(new, "metadata") or {}
    if new["apiVersion"] == keys.APPS_V1:
        return list(check_field_types(new, NATIVE_DAEMONSET)) or [
            *check_metadata_update(before, after),
            *native.check_selector_unchanged(
                section(old, "spec") or {}, section(new, "spec") or {}
            ),
            *_check_native(default_daemonset(new)),
        ]
    bare = drop_nulls(new)
    return _check_schema(bare) or [
        *check_metadata_update(before, after, custom=True),
        *advanced.check_selector_unchanged(old, bare),
        *_check_advanced(bare),
    ]


def validate_advanced_on_server(new: Object, old: Object | None = None) -> list[FieldError]:
    """What an API server that has only the definition refuses, in its order.

    Faults of the template are not among it: they are found when a pod is made.
    """
    bare = drop_nulls(new)
    wrong = _check_schema(bare)
    if any(error.reason in _SCHEMA_REASONS for error in wrong):
        return [*wrong, _RULES_SKIPPED]
    changed = advanced.check_selector_unchanged(old, bare) if old is not None else ()
    return wrong or [*advanced.check_own_fields(bare), *changed]


def _check_identity(daemonset: object) -> list[FieldError]:
    if not isinstance(daemonset, dict):
        return list(check_field_types(daemonset, NATIVE_DAEMONSET))
    version, kind = daemonset.get("apiVersion"), daemonset.get("kind")
    if version not in _VERSIONS:
        return [unsupported("apiVersion", version, _VERSIONS)]
    return [] if kind == keys.KIND else [unsupported("kind", kind, (keys.KIND,))]


def _check_native(daemonset: Object) -> FieldErrors:
    spec = section(daemonset, "spec") or {}
    yield from native.check_labels_selected(spec)
    yield from native.check_native_fields(spec)
    template = section(spec, "template") or {}
    yield from _check_template(template)
    if (section(template, "spec") or {}).get("activeDeadlineSeconds") is not None:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", advanced.NO_DEADLINE)


def _check_advanced(daemonset: Object) -> FieldErrors:
    yield from advanced.check_own_fields(daemonset)
    yield from _check_template(default_template(daemonset["spec"]["template"]))


def _check_template(template: Object) -> FieldErrors:
    yield from check_template(template, "spec.template")
    policy = text(section(template, "spec") or {}, "restartPolicy")
    if policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


# --- What the schema of the Advanced kind refuses before the CEL rules --------------------------


def _check_schema(daemonset: Object) -> list[FieldError]:
    # A write of the DaemonSet does not change the status, so it is not checked.
    written = {name: value for name, value in daemonset.items() if name != "status"}
    wrong = list(check_advanced_field_types(written, ADVANCED_DAEMONSET))
    return wrong or [
        *_check_containers_given(daemonset),
        *_check_restart_policy(daemonset),
        *_check_named_lists(daemonset),
    ]


def _pod_spec(daemonset: Object) -> Object:
    template: Object = daemonset["spec"]["template"]
    return section(template, "spec") or {}


def _check_containers_given(daemonset: Object) -> FieldErrors:
    """No pod can be made of a template without containers, or of a container without an image."""
    spec = daemonset["spec"]["template"].get("spec")
    if spec is None:
        yield required("spec.template.spec")
    elif spec.get("containers") is None:
        yield required("spec.template.spec.containers")
    for kind in ("containers", "initContainers"):
        for here, container in sections(spec or {}, kind, "spec.template.spec"):
            if container.get("image") is None:
                yield required(f"{here}.image")


def _check_restart_policy(daemonset: Object) -> FieldErrors:
    policy = _pod_spec(daemonset).get("restartPolicy")
    if policy is not None and policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _check_named_lists(daemonset: Object) -> FieldErrors:
    """Items of lists that are merged by name must have unique names."""
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
