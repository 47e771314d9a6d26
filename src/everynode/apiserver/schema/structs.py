"""msgspec structs made from the table of types, so that objects are converted in C.

A struct accepts what kube-apiserver accepts: it rejects unknown fields and wrong types, omits empty
fields, and adds those that are always present (`status: {}`, `numberReady: 0`).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final

import msgspec

from everynode.api import types
from everynode.api.types import FieldInfo, TypeInfo
from everynode.apiserver.request import protobuf_fields

# The first members of every object, in the order of kube-apiserver.
_FIRST_FIELDS: Final = ("kind", "apiVersion", "metadata")

_INT32: Final = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Final = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# Days of the calendar. The patterns never backtrack: each text matches in one way only.
_DAY: Final = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK: Final = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_ZONE: Final = r"(?:Z|[+-](?:[01][0-9]|2[0-4]):(?:[0-5][0-9]|60))"
TIME_PATTERN: Final = rf"^{_DAY}{_CLOCK}(?:\.[0-9]+)?{_ZONE}\Z"
MICRO_PATTERN: Final = rf"^{_DAY}{_CLOCK}\.[0-9]{{6}}{_ZONE}\Z"
_TIME: Final = Annotated[str, msgspec.Meta(pattern=TIME_PATTERN)]
_MICRO: Final = Annotated[str, msgspec.Meta(pattern=MICRO_PATTERN)]
# Base64 in full groups of four; text with line breaks is not checked further.
_BYTES: Final = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
        r"|[A-Za-z0-9+/=]*[\r\n][A-Za-z0-9+/=\r\n]*)\Z"
    ),
]
_QUANTITY: Final = Annotated[
    str, msgspec.Meta(pattern=r"^([+-]?[0-9.]++)([eEinumkKMGTP]*+[-+]?[0-9]*+)\Z")
]

_ZERO_VALUES: Final[dict[str, Any]] = {"string": "", "integer": 0, "boolean": False, "number": 0.0}

# Times that are omitted if they are not set; all others are written as null then.
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


class RecursiveType(Exception):
    """A type that contains itself, which structs made at run time cannot express."""


@cache
def struct_for(type_name: str) -> type[msgspec.Struct] | None:
    """Return the struct of a type, None for the few types that contain themselves."""
    try:
        return _Builder().struct(type_name)
    except RecursiveType:
        return None


class _Builder:
    def __init__(self) -> None:
        self._made: dict[str, type[msgspec.Struct] | None] = {}

    def struct(self, name: str) -> type[msgspec.Struct]:
        """Return the struct of a type, made once; None in `_made` means it is being made."""
        if name in self._made:
            made = self._made[name]
            if made is None:
                raise RecursiveType(name)
            return made
        self._made[name] = None
        info = types.load()[name]
        fields, rename = [], {}
        for index, json_name in enumerate(_field_order(info)):
            attribute = f"f{index}"
            rename[attribute] = json_name
            keep_zero = protobuf_fields.load().keeps_zero(name, json_name)
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
            # A factory, because omit_defaults would omit a plain default.
            return kind, msgspec.field(default_factory=lambda: zero)
        if not keep_zero and field.type in _ZERO_VALUES:
            return kind, _ZERO_VALUES[field.type]
        return (kind, None) if kind is Any else (kind | None, None)

    def _time(self, field: FieldInfo) -> tuple[Any, Any]:
        # A factory, because omit_defaults would omit a plain default.
        return self._kind(field) | None, msgspec.field(default_factory=lambda: None)

    def _kind(self, field: FieldInfo) -> Any:
        if field.ref:
            return self._type_by_name(field.ref)
        if field.type == "array":
            return list[self._kind(field.items)] if field.items else list[Any]  # type: ignore[misc]
        if field.type == "object":
            return dict[str, self._kind(field.values) if field.values else Any]  # type: ignore[misc]
        return _scalar(field.type, field.format)

    def _type_by_name(self, name: str) -> Any:
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


def _field_order(info: TypeInfo) -> list[str]:
    first = [name for name in _FIRST_FIELDS if name in info.fields]
    return first + sorted(name for name in info.fields if name not in _FIRST_FIELDS)
