"""What is special about secrets, service accounts and the RBAC kinds, which are only stored."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final

from everynode.api.daemonset import Fault
from everynode.api.validation.faults import IMMUTABLE, forbidden, invalid, invalid_each
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_RBAC: Final = "rbac.authorization.k8s.io"


class SecretRules(Rules):
    """What is given in plain text is stored in base64."""

    fields = ("type",)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """What sort of secret it is."""
        return (obj.get("type", ""),)

    def default(self, obj: Object) -> Object:
        """Fold `stringData` into `data`."""
        made = {**obj}
        plain = made.pop("stringData", None) or {}
        if plain:
            coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
            made["data"] = {**(made.get("data") or {}), **coded}
        made.setdefault("type", "Opaque")
        return made

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Its keys are names of files."""
        return list(key_faults(obj, ("data",)))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The type stays."""
        faults = [*data_faults(new, old, ("data",)), *self.create_faults(new, world)]
        if new.get("type") != old.get("type"):
            faults.insert(0, invalid("type", new.get("type"), IMMUTABLE))
        return faults


class ConfigMapRules(Rules):
    """One that is immutable stays as it is."""

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Its keys are names of files."""
        return list(key_faults(obj, ("data", "binaryData")))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """Neither the data nor the mark can be taken back."""
        return [*data_faults(new, old, ("data", "binaryData")), *self.create_faults(new, world)]


def key_faults(obj: Object, members: tuple[str, ...]) -> Iterator[Fault]:
    """Every key could be the name of a file, and is there once."""
    for member in members:
        for key in sorted(obj.get(member) or {}):
            path = f"{member}[{key}]"
            yield from invalid_each(path, key, _file_name_faults(key))
            if member != members[0] and key in (obj.get(members[0]) or {}):
                yield invalid(path, key, f"duplicate of key present in {members[0]}")


def _file_name_faults(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
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


def data_faults(new: Object, old: Object, members: tuple[str, ...]) -> list[Fault]:
    """What is marked as immutable does not change."""
    if not old.get("immutable"):
        return []
    fixed = "field is immutable when `immutable` is set"
    faults = [forbidden("immutable", fixed)] if not new.get("immutable") else []
    return faults + [forbidden(key, fixed) for key in members if new.get(key) != old.get(key)]


class ServiceAccountRules(Rules):
    """Deleting one answers with the object."""

    returns_deleted = True


def path_segment(name: str) -> Iterator[str]:
    """Names of RBAC kinds may be almost anything that fits into an address."""
    if name in (".", ".."):
        yield f"may not be '{name}'"
    for part in ("/", "%"):
        if part in name:
            yield f"may not contain '{part}'"


class RoleRules(Rules):
    """Rules are stored as they are."""

    name_rule = staticmethod(path_segment)


class ClusterRoleRules(RoleRules):
    """The same for the whole cluster."""


class RoleBindingRules(Rules):
    """A binding says which role, once and for all."""

    name_rule = staticmethod(path_segment)

    def default(self, obj: Object) -> Object:
        """Subjects and roles belong to the RBAC group unless they say otherwise."""
        made = {**obj}
        role = {**(made.get("roleRef") or {})}
        role["apiGroup"] = role.get("apiGroup") or _RBAC
        made["roleRef"] = role
        if made.get("subjects"):
            made["subjects"] = [_subject(subject) for subject in made["subjects"]]
        return made

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The role stays."""
        role = new.get("roleRef") or {}
        if role == old.get("roleRef"):
            return []
        names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        shown = {shown: role.get(name, "") for shown, name in names}
        return [invalid("roleRef", shown, "cannot change roleRef")]


def _subject(subject: Object) -> Object:
    if subject.get("apiGroup") or subject.get("kind") not in ("User", "Group"):
        return subject
    return {**subject, "apiGroup": _RBAC}
