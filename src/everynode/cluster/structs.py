"""Types of the table as msgspec structs, so that reading an object costs what C code costs.

A struct takes what the real server takes: it refuses unknown fields and wrong types, leaves out
what is empty, and fills in the parts that are always there (`status: {}`, `numberReady: 0`).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final

import msgspec

from everynode.api import types
from everynode.api.types import FieldInfo, TypeInfo
from everynode.cluster import wire

# The first members of every object, in the order in which the real server writes them.
_FIRST: Final = ("kind", "apiVersion", "metadata")

_INT32: Final = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Final = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TIME: Final = Annotated[
    str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$")
]
_MICRO: Final = Annotated[
    str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")
]
# Base64 in full groups of four; whoever breaks it into lines is believed.
_BYTES: Final = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
        r"|[A-Za-z0-9+/=\r\n]*[\r\n][A-Za-z0-9+/=\r\n]*)$"
    ),
]
_QUANTITY: Final = Annotated[
    str, msgspec.Meta(pattern=r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
]

_ZEROS: Final[dict[str, Any]] = {"string": "", "integer": 0, "boolean": False, "number": 0.0}

# Times that may be missing; all others are written as null while they are not known.
_OPTIONAL_TIMES: Final = (
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "startTime",
    "timeAdded",
    "acquireTime",
    "renewTime",
)

_SPECIAL: Final[dict[str, Any]] = {
    types.QUANTITY: _QUANTITY | int | float,
    types.INT_OR_STRING: int | str,
    types.TIME: _TIME,
    types.MICRO_TIME: _MICRO,
}


class Recursive(Exception):
    """A type that contains itself, which structs made at run time cannot say."""


@cache
def struct_for(type_name: str) -> type[msgspec.Struct] | None:
    """The struct of a type, None for the few types that contain themselves."""
    try:
        return _Builder().struct(type_name)
    except Recursive:
        return None


class _Builder:
    def __init__(self) -> None:
        self._made: dict[str, type[msgspec.Struct] | None] = {}

    def struct(self, name: str) -> type[msgspec.Struct]:
        """The struct of one type, made once; None in the table means it is being made."""
        if name in self._made:
            made = self._made[name]
            if made is None:
                raise Recursive(name)
            return made
        self._made[name] = None
        info = types.load()[name]
        fields, rename = [], {}
        for index, json_name in enumerate(_ordered(info)):
            attribute = f"f{index}"
            rename[attribute] = json_name
            keep_zero = wire.load().keeps_zero(name, json_name)
            field = info.fields[json_name]
            if field.ref in (types.TIME, types.MICRO_TIME) and json_name not in _OPTIONAL_TIMES:
                fields.append((attribute, *self._time(field)))
            else:
                fields.append((attribute, *self._field(field, keep_zero=keep_zero)))
        struct = msgspec.defstruct(
            name.rsplit(".", 1)[1],
            fields,
            rename=rename,
            omit_defaults=True,
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
            namespace={"type_name": name},
        )
        self._made[name] = struct
        return struct

    def _field(self, field: FieldInfo, *, keep_zero: bool) -> tuple[Any, Any]:
        kind = self._kind(field)
        if field.type == "array":
            return kind, msgspec.field(default_factory=list)
        if field.type == "object":
            return kind, msgspec.field(default_factory=dict)
        zero = field.default
        if zero == {} and field.ref and isinstance(kind, type):
            return kind, msgspec.field(default_factory=kind)
        if zero is not None and not zero and not field.ref:
            # A factory, because a plain default would be left out of the result.
            return kind, msgspec.field(default_factory=lambda: zero)
        if not keep_zero and field.type in _ZEROS:
            return kind, _ZEROS[field.type]
        return (kind, None) if kind is Any else (kind | None, None)

    def _time(self, field: FieldInfo) -> tuple[Any, Any]:
        # A factory, because a plain default would be left out of the result.
        return self._kind(field) | None, msgspec.field(default_factory=lambda: None)

    def _kind(self, field: FieldInfo) -> Any:
        if field.ref:
            return self._named(field.ref)
        if field.type == "array":
            return list[self._kind(field.items)] if field.items else list[Any]  # type: ignore[misc]
        if field.type == "object":
            return dict[str, self._kind(field.values) if field.values else Any]  # type: ignore[misc]
        return _scalar(field.type, field.format)

    def _named(self, name: str) -> Any:
        special = _SPECIAL.get(name)
        if special is not None:
            return special
        info = types.load()[name]
        return self.struct(name) if info.fields else Any


def _scalar(kind: str, form: str) -> Any:
    if kind == "integer":
        return _INT64 if form == "int64" else _INT32
    if kind == "string":
        return _BYTES if form == "byte" else _TIME if form == "date-time" else str
    return {"boolean": bool, "number": float}.get(kind, Any)


def _ordered(info: TypeInfo) -> list[str]:
    first = [name for name in _FIRST if name in info.fields]
    return first + sorted(name for name in info.fields if name not in _FIRST)
