"""Validation of env and envFrom: names, and one source for each variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everynode.api.validation.accessors import section, sections, text
from everynode.api.validation.downward_api import (
    IN_VARIABLES,
    check_field_reference,
    check_resource_reference,
)
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    invalid,
    invalid_each,
    required,
)
from everynode.api.validation.names import (
    config_key,
    dns_label,
    dns_subdomain,
    no_parent_path,
    variable_name,
)

_SEVERAL: Final = "may not have more than one field specified at a time"


def check_environment(container: Object, path: str) -> FieldErrors:
    """Errors in the variables of a container and in where they come from."""
    for here, variable in sections(container, "env", path):
        name = text(variable, "name")
        if not name:
            yield required(f"{here}.name")
        else:
            yield from invalid_each(f"{here}.name", name, variable_name(name))
        source = section(variable, "valueFrom")
        if source is not None:
            yield from _check_source(source, f"{here}.valueFrom", value=text(variable, "value"))
    for here, origin in sections(container, "envFrom", path):
        prefix = text(origin, "prefix")
        if prefix:
            yield from invalid_each(f"{here}.prefix", prefix, variable_name(prefix))
        yield from _check_origin(origin, here, f"{path}.envFrom")


def _check_source(source: Object, path: str, *, value: str) -> FieldErrors:
    found = [name for name in _SOURCES if section(source, name) is not None]
    for name in found:
        yield from _SOURCES[name](section(source, name) or {}, f"{path}.{name}")
    if not found:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        yield invalid(path, "", detail)
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield invalid(path, "", _SEVERAL)


def _check_origin(origin: Object, path: str, whole: str) -> FieldErrors:
    found = [name for name in ("configMapRef", "secretRef") if section(origin, name) is not None]
    for kind in found:
        name = text(section(origin, kind) or {}, "name")
        if not name:
            yield required(f"{path}.{kind}.name")
        else:
            yield from invalid_each(f"{path}.{kind}.name", name, dns_subdomain(name))
    # The API server leaves the index of the item out of these paths.
    if not found:
        yield invalid(whole, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(found) > 1:
        yield invalid(whole, "", _SEVERAL)


def _check_field(reference: Object, path: str) -> FieldErrors:
    return check_field_reference(reference, path, IN_VARIABLES)


def _check_resource(reference: Object, path: str) -> FieldErrors:
    return check_resource_reference(reference, path, in_file=False)


def _check_key(reference: Object, path: str) -> FieldErrors:
    name, key = text(reference, "name"), text(reference, "key")
    yield from invalid_each(f"{path}.name", name, dns_subdomain(name))
    if not key:
        yield required(f"{path}.key")
    else:
        yield from invalid_each(f"{path}.key", key, config_key(key))


def _check_file(reference: Object, path: str) -> FieldErrors:
    rules = (("key", variable_name), ("volumeName", dns_label), ("path", no_parent_path))
    for name, rule in rules:
        value = text(reference, name)
        if not value:
            yield required(f"{path}.{name}")
        else:
            yield from invalid_each(f"{path}.{name}", value, rule(value))


_SOURCES: Final[dict[str, Callable[[Object, str], FieldErrors]]] = {
    "fieldRef": _check_field,
    "resourceFieldRef": _check_resource,
    "configMapKeyRef": _check_key,
    "secretKeyRef": _check_key,
    "fileKeyRef": _check_file,
}
