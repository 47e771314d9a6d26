"""Strategies of Secrets, ConfigMaps, ServiceAccounts and the RBAC kinds."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import (
    IMMUTABLE,
    forbidden,
    invalid,
    invalid_each,
    too_long,
)
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_KEY_LENGTH: Final = 253
_MAX_DATA_BYTES: Final = 1 << 20  # bytes
RBAC_GROUP: Final = "rbac.authorization.k8s.io"


class SecretStrategy(ResourceStrategy):
    """Secrets: stringData is stored in data, in base64."""

    fields = ("type",)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Return the type."""
        return (obj.get("type", ""),)

    def default(self, obj: Object) -> Object:
        """Merge `stringData` into `data`."""
        defaulted = {**obj}
        plain = defaulted.pop("stringData", None) or {}
        if plain:
            coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
            defaulted["data"] = {**(defaulted.get("data") or {}), **coded}
        defaulted.setdefault("type", "Opaque")
        return defaulted

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the keys and the total size."""
        total = sum(map(_decoded_size, (obj.get("data") or {}).values()))
        large = [too_long("data", _MAX_DATA_BYTES)] if total > _MAX_DATA_BYTES else []
        return [*key_faults(obj, ("data",)), *large]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same, that the type stays, and `immutable`."""
        faults = [*immutable_faults(new, old, ("data",)), *self.validate_create(new, context)]
        if new.get("type") != old.get("type"):
            faults.insert(0, invalid("type", new.get("type"), IMMUTABLE))
        return faults


class ConfigMapStrategy(ResourceStrategy):
    """ConfigMaps."""

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the keys and the total size."""
        total = sum(len(text.encode()) for text in (obj.get("data") or {}).values())
        total += sum(map(_decoded_size, (obj.get("binaryData") or {}).values()))
        large = [too_long("[]", _MAX_DATA_BYTES)] if total > _MAX_DATA_BYTES else []
        return [*key_faults(obj, ("data", "binaryData")), *large]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same, and `immutable`."""
        return [
            *immutable_faults(new, old, ("data", "binaryData")),
            *self.validate_create(new, context),
        ]


def _decoded_size(text: str) -> int:
    """Return the number of bytes that a base64 string decodes to."""
    return len(text.replace("\n", "").replace("\r", "").rstrip("=")) * 3 // 4


def key_faults(obj: Object, members: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield keys that are not file names, or occur in two members."""
    for member in members:
        for key in sorted(obj.get(member) or {}):
            path = f"{member}[{key}]"
            yield from invalid_each(path, key, _file_name_faults(key))
            if member != members[0] and key in (obj.get(members[0]) or {}):
                yield invalid(path, key, f"duplicate of key present in {members[0]}")


def _file_name_faults(key: str) -> Iterator[str]:
    if len(key) > _MAX_KEY_LENGTH:
        yield f"must be no more than {_MAX_KEY_LENGTH} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def immutable_faults(new: Object, old: Object, members: tuple[str, ...]) -> list[FieldError]:
    """Return faults if an immutable object changed."""
    if not old.get("immutable"):
        return []
    fixed = "field is immutable when `immutable` is set"
    faults = [forbidden("immutable", fixed)] if not new.get("immutable") else []
    return faults + [forbidden(key, fixed) for key in members if new.get(key) != old.get(key)]


class ServiceAccountStrategy(ResourceStrategy):
    """ServiceAccounts: DELETE answers with the object."""

    returns_deleted_object = True


def path_segment(name: str) -> Iterator[str]:
    """Validate the name of an RBAC object: any valid path segment."""
    if name in (".", ".."):
        yield f"may not be '{name}'"
    for part in ("/", "%"):
        if part in name:
            yield f"may not contain '{part}'"


class RoleStrategy(ResourceStrategy):
    """Roles: stored as they are, not enforced."""

    name_rule = staticmethod(path_segment)


class ClusterRoleStrategy(RoleStrategy):
    """ClusterRoles."""


class RoleBindingStrategy(ResourceStrategy):
    """RoleBindings and ClusterRoleBindings: roleRef is immutable."""

    name_rule = staticmethod(path_segment)

    def default(self, obj: Object) -> Object:
        """Default the apiGroup of roleRef and subjects."""
        defaulted = {**obj}
        role = {**(defaulted.get("roleRef") or {})}
        role["apiGroup"] = role.get("apiGroup") or RBAC_GROUP
        defaulted["roleRef"] = role
        if defaulted.get("subjects"):
            defaulted["subjects"] = [_default_subject(subject) for subject in defaulted["subjects"]]
        return defaulted

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check that roleRef stays."""
        role = new.get("roleRef") or {}
        if role == old.get("roleRef"):
            return []
        names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        shown = {shown: role.get(name, "") for shown, name in names}
        return [invalid("roleRef", shown, "field is immutable")]


def _default_subject(subject: Object) -> Object:
    if subject.get("apiGroup") or subject.get("kind") not in ("User", "Group"):
        return subject
    return {**subject, "apiGroup": RBAC_GROUP}
