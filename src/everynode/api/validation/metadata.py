"""Validation of ObjectMeta, when an object is created and when it is updated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from everynode.api.selector import label_key_errors, label_value_errors
from everynode.api.validation.accessors import flag, number, pairs, sections, text, texts
from everynode.api.validation.field_errors import (
    IMMUTABLE,
    FieldErrors,
    Object,
    at_least_zero,
    forbidden,
    invalid,
    invalid_each,
    required,
    too_long,
)
from everynode.api.validation.names import dns_label, dns_subdomain

NameRule = Callable[[str], Iterator[str]]

ANNOTATIONS_LIMIT: Final = 256 * 1024
_IMMUTABLE_FIELDS: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def check_metadata(
    metadata: Object,
    path: str = "metadata",
    *,
    name_rule: NameRule = dns_subdomain,
    namespaced: bool = True,
    custom: bool = False,
) -> FieldErrors:
    """Errors in the metadata of a new object; a namespace may still be missing.

    Only custom resources may have finalizers of any name.
    """
    yield from _check_names(metadata, path, name_rule)
    namespace = text(metadata, "namespace")
    if namespace and not namespaced:
        yield forbidden(f"{path}.namespace", "not allowed on this type")
    elif namespace:
        yield from invalid_each(f"{path}.namespace", namespace, dns_label(namespace))
    yield from at_least_zero(f"{path}.generation", metadata.get("generation"))
    yield from check_labels(pairs(metadata, "labels"), f"{path}.labels")
    yield from check_annotations(pairs(metadata, "annotations"), f"{path}.annotations")
    yield from _check_owners(metadata, path)
    yield from _check_finalizers(texts(metadata, "finalizers"), f"{path}.finalizers")
    if not custom:
        yield from _check_finalizer_names(metadata, path)


def check_metadata_update(
    old: Object, new: Object, path: str = "metadata", *, custom: bool = False
) -> FieldErrors:
    """Errors in an update of metadata: immutable fields, new finalizers during deletion."""
    if old.get("deletionTimestamp") is not None:
        added = sorted(set(texts(new, "finalizers")) - set(texts(old, "finalizers")))
        if added:
            listed = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
            yield forbidden(
                f"{path}.finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {listed}",
            )
    if (number(new, "generation") or 0) < (number(old, "generation") or 0):
        yield invalid(f"{path}.generation", new.get("generation") or 0, "must not be decremented")
    for name in _IMMUTABLE_FIELDS:
        if new.get(name) != old.get(name):
            yield invalid(f"{path}.{name}", new.get(name), IMMUTABLE)
    yield from check_labels(pairs(new, "labels"), f"{path}.labels")
    yield from check_annotations(pairs(new, "annotations"), f"{path}.annotations")
    yield from _check_owners(new, path)
    if not custom:
        yield from _check_finalizer_names(new, path)


def check_labels(labels: dict[str, str], path: str) -> FieldErrors:
    """Errors in the keys and values of labels."""
    for key, value in sorted(labels.items()):
        yield from invalid_each(path, key, label_key_errors(key))
        yield from invalid_each(path, value, label_value_errors(value))


def check_annotations(annotations: dict[str, str], path: str) -> FieldErrors:
    """Errors in the keys of annotations and in their total size."""
    for key in sorted(annotations):
        # Upper case is allowed in the prefix, unlike in labels.
        yield from invalid_each(path, key, label_key_errors(key.lower()))
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > ANNOTATIONS_LIMIT:
        yield too_long(path, ANNOTATIONS_LIMIT)


def _check_names(metadata: Object, path: str, name_rule: NameRule) -> FieldErrors:
    prefix = text(metadata, "generateName")
    if prefix:
        # Generated characters follow the prefix, so it may end with a dash.
        whole = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        yield from invalid_each(f"{path}.generateName", prefix, name_rule(whole))
    name = text(metadata, "name")
    if name:
        yield from invalid_each(f"{path}.name", name, name_rule(name))
    elif not prefix:
        yield required(f"{path}.name", "name or generateName is required")


def _check_owners(metadata: Object, path: str) -> FieldErrors:
    here = f"{path}.ownerReferences"
    controller = ""
    for at, owner in sections(metadata, "ownerReferences", path):
        version = text(owner, "apiVersion")
        if version and (version.count("/") > 1 or version.endswith("/")):
            yield invalid(f"{at}.apiVersion", version, "must be <group>/<version> or <version>")
        for name in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, name):
                yield required(f"{at}.{name}", "must not be empty")
        if version == "v1" and text(owner, "kind") == "Event":
            detail = "/v1, Kind=Event is disallowed from being an owner"
            yield invalid(at, _owner_as_printed(owner), detail)
        if flag(owner, "controller"):
            this = f"{text(owner, 'kind')}/{text(owner, 'name')}"
            if controller:
                yield invalid(
                    here,
                    [_owner_as_printed(each) for each in metadata["ownerReferences"]],
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}',
                )
            else:
                controller = this


def _owner_as_printed(owner: Object) -> msgspec.Raw:
    """An owner reference as the API server prints it, in the order of the Go struct."""
    names = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    printed = {name: owner[name] for name in names if owner.get(name) is not None}
    return msgspec.Raw(msgspec.json.encode(printed))


def _check_finalizers(finalizers: list[str], path: str) -> FieldErrors:
    for finalizer in finalizers:
        yield from invalid_each(path, finalizer, label_key_errors(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid(path, finalizers, detail)


def _check_finalizer_names(metadata: Object, path: str) -> FieldErrors:
    for index, name in enumerate(texts(metadata, "finalizers")):
        if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion"):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{path}.finalizers[{index}]", name, detail)
