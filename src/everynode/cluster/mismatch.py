"""Why a value cannot be read as its type, in the words of the real server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from everynode.api import types
from everynode.api.quantity import QuantityError, parse_quantity
from everynode.api.types import FieldInfo

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_QUANTITY_RULE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class Place(NamedTuple):
    """Where a value is: the type that has the field, and the names that lead there."""

    owner: str
    path: str

    def says(self, value: Any, wanted: str, *, number: bool = False) -> str:
        """The sentence for a value of the wrong sort."""
        sort = _sort(value)
        if number:
            sort = f"number {value!r}"
        field = f"{self.owner}.{self.path}"
        return f"json: cannot unmarshal {sort} into Go struct field {field} of type {wanted}"


def first_mismatch(obj: dict[str, Any], type_name: str) -> str | None:
    """The first value of an object that does not fit its type, None if all fit."""
    return _in_struct(obj, type_name, "")


def _in_struct(value: dict[str, Any], name: str, prefix: str) -> str | None:
    fields = types.load()[name].fields
    owner = name.rsplit(".", 1)[1]
    for key, child in value.items():
        field = fields.get(key)
        if field is None or child is None:
            continue
        fault = _in_value(child, field, Place(owner, prefix + key))
        if fault is not None:
            return fault
    return None


def _in_value(value: Any, field: FieldInfo, place: Place) -> str | None:
    if value is None:
        return None
    if field.ref:
        return _in_named(value, field.ref, place)
    if field.type == "array":
        return _in_array(value, field, place)
    if field.type == "object":
        return _in_object(value, field, place)
    return _in_scalar(value, field, place)


def _in_array(value: Any, field: FieldInfo, place: Place) -> str | None:
    if not isinstance(value, list):
        return place.says(value, go_type(field))
    return _first(value, field.items, place)


def _in_object(value: Any, field: FieldInfo, place: Place) -> str | None:
    if not isinstance(value, dict):
        return place.says(value, go_type(field))
    return _first(list(value.values()), field.values, place)


def _first(values: list[Any], field: FieldInfo | None, place: Place) -> str | None:
    if field is None:
        return None
    return next((fault for value in values if (fault := _in_value(value, field, place))), None)


def _in_named(value: Any, name: str, place: Place) -> str | None:
    if name == types.QUANTITY:
        return _in_quantity(value)
    if name == types.INT_OR_STRING:
        return _in_int_or_string(value, place)
    if name in (types.TIME, types.MICRO_TIME):
        return _in_time(value, place, micro=name == types.MICRO_TIME)
    if not types.load()[name].fields:
        return None
    if not isinstance(value, dict):
        return place.says(value, _struct_name(name))
    return _in_struct(value, name, place.path + ".")


def _in_scalar(value: Any, field: FieldInfo, place: Place) -> str | None:
    wanted = go_type(field)
    if field.type == "string":
        if not isinstance(value, str):
            return place.says(value, wanted)
        if field.format == "byte":
            return _in_base64(value)
        return None
    if field.type == "boolean":
        return None if isinstance(value, bool) else place.says(value, wanted)
    if field.type == "integer":
        return _in_integer(value, wanted, place)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return None if fits or field.type != "number" else place.says(value, wanted)


def _in_integer(value: Any, wanted: str, place: Place) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return place.says(value, wanted)
    limit = _RANGES.get(wanted, 2**31)
    if isinstance(value, float) or not -limit <= value < limit:
        return place.says(value, wanted, number=True)
    return None


def _in_quantity(value: Any) -> str | None:
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            parse_quantity(value)
            return None
    except QuantityError:
        pass
    return _QUANTITY_RULE


def _in_int_or_string(value: Any, place: Place) -> str | None:
    return None if isinstance(value, str) else _in_integer(value, "int32", place)


def _in_time(value: Any, place: Place, *, micro: bool) -> str | None:
    if not isinstance(value, str):
        return place.says(value, "string")
    if (_MICRO if micro else _TIME).fullmatch(value):
        return None
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    rest, part = (value, "2006") if not micro else _unread(value)
    return f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{part}"'


def _unread(value: str) -> tuple[str, str]:
    """What of a time is left when its fraction of a second is due."""
    return (value[19:], ".000000") if _TIME.fullmatch(value) else (value, "2006")


def _in_base64(value: str) -> str | None:
    text = value.replace("\n", "").replace("\r", "")
    found = _BASE64.match(text)
    end = found.end() if found else 0
    return None if end == len(text) else f"illegal base64 data at input byte {end}"


def first_misfit(obj: dict[str, Any], type_name: str) -> str | None:
    """The same, in the words that the real server has for strategic patches."""
    for key, value in obj.items():
        field = types.load()[type_name].fields.get(key)
        if field is not None and value is not None:
            fault = _misfit(value, field)
            if fault is not None:
                return fault
    return None


def _misfit(value: Any, field: FieldInfo) -> str | None:
    sort = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
    kind = sort.get(type(value), "float64")
    if field.type == "array":
        if not isinstance(value, list):
            return f"cannot restore slice from {kind}"
        inner = field.items
        return _next(_misfit(item, inner) for item in value if item is not None and inner)
    if field.type == "object":
        if not isinstance(value, dict):
            return f"cannot restore map from {kind}"
        values = field.values
        return _next(
            _misfit(item, values) for item in value.values() if item is not None and values
        )
    if field.ref and types.load()[field.ref].fields:
        if not isinstance(value, dict):
            return f"cannot restore struct from: {kind}"
        return first_misfit(value, field.ref)
    fault = _in_value(value, field, Place("", ""))
    if fault is None or not fault.startswith("json:"):
        return fault
    wanted = go_type(field)
    if wanted == "string" and kind in ("int64", "float64"):
        return f"cannot convert {kind} to string"
    return f"unrecognized type: {wanted}"


def _next(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


def go_type(field: FieldInfo) -> str:
    """The type of a field as the real server's messages name it."""
    if field.ref:
        return _struct_name(field.ref)
    if field.type == "array":
        return "[]" + (go_type(field.items) if field.items else "interface {}")
    if field.type == "object":
        return "map[string]" + (go_type(field.values) if field.values else "interface {}")
    if field.type == "integer":
        return field.format or "int32"
    if field.format == "byte":
        return "[]uint8"
    return {"boolean": "bool", "number": "float64"}.get(field.type, "string")


def _struct_name(name: str) -> str:
    package, _, short = name.rpartition(".")
    return f"{package.rsplit('.', 1)[-1]}.{short}"


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names: dict[type, str] = {
        str: "string",
        int: "number",
        float: "number",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "null")
