"""Type errors: which value of an object has the wrong type, in the words of kube-apiserver."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from everynode.api import types
from everynode.api.quantity import QuantityError, parse_quantity
from everynode.api.types import FieldInfo

_TIME: Final = re.compile(
    "[0-9]{4}-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    "([.][0-9]+)?(?:Z|[+-]([0-9]{2}):([0-9]{2}))"
)
_MICRO: Final = re.compile(_TIME.pattern.replace("([.][0-9]+)?", "([.][0-9]{6})"))
_PARTS: Final = (
    ("month", 1, 1, 12),
    ("day", 2, 1, 31),
    ("hour", 3, 0, 23),
    ("minute", 4, 0, 59),
    ("second", 5, 0, 59),
    ("time zone offset minute", 8, 0, 60),
    ("time zone offset hour", 7, 0, 24),
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_QUANTITY_RULE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class FieldLocation(NamedTuple):
    """Where a value is: the Go type that has the field, and the path to it."""

    owner: str
    path: str

    def mismatch(self, value: Any, wanted: str, *, number: bool = False) -> str:
        """Return the message for a value of the wrong type."""
        json_type = _json_type(value)
        if number:
            json_type = f"number {value!r}"
        field = f"{self.owner}.{self.path}"
        return f"json: cannot unmarshal {json_type} into Go struct field {field} of type {wanted}"


def first_type_error(obj: dict[str, Any], type_name: str) -> str | None:
    """Return the message for the first value of the wrong type, None if there is none."""
    return _check_struct(obj, type_name, "")


def _check_struct(value: dict[str, Any], name: str, prefix: str) -> str | None:
    fields = types.load()[name].fields
    owner = name.rsplit(".", 1)[1]
    for key, child in value.items():
        field = fields.get(key)
        if field is None or child is None:
            continue
        fault = _check_value(child, field, FieldLocation(owner, prefix + key))
        if fault is not None:
            return fault
    return None


def _check_value(value: Any, field: FieldInfo, place: FieldLocation) -> str | None:
    if value is None:
        return None
    if field.ref:
        return _check_named_type(value, field.ref, place)
    if field.type == "array":
        return _check_array(value, field, place)
    if field.type == "object":
        return _check_object(value, field, place)
    return _check_scalar(value, field, place)


def _check_array(value: Any, field: FieldInfo, place: FieldLocation) -> str | None:
    if not isinstance(value, list):
        return place.mismatch(value, go_type(field))
    return _check_each(value, field.items, place)


def _check_object(value: Any, field: FieldInfo, place: FieldLocation) -> str | None:
    if not isinstance(value, dict):
        return place.mismatch(value, go_type(field))
    return _check_each(list(value.values()), field.values, place)


def _check_each(values: list[Any], field: FieldInfo | None, place: FieldLocation) -> str | None:
    if field is None:
        return None
    return next((fault for value in values if (fault := _check_value(value, field, place))), None)


def _check_named_type(value: Any, name: str, place: FieldLocation) -> str | None:
    if name == types.QUANTITY:
        return _check_quantity(value)
    if name == types.INT_OR_STRING:
        return _check_int_or_string(value, place)
    if name in (types.TIME, types.MICRO_TIME):
        return _check_time(value, place, micro=name == types.MICRO_TIME)
    if not types.load()[name].fields:
        return None
    if not isinstance(value, dict):
        return place.mismatch(value, _struct_name(name))
    return _check_struct(value, name, place.path + ".")


def _check_scalar(value: Any, field: FieldInfo, place: FieldLocation) -> str | None:
    wanted = go_type(field)
    if field.type == "string":
        if not isinstance(value, str):
            return place.mismatch(value, wanted)
        if field.format == "byte":
            return _check_base64(value)
        return None
    if field.type == "boolean":
        return None if isinstance(value, bool) else place.mismatch(value, wanted)
    if field.type == "integer":
        return _check_integer(value, wanted, place)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return None if fits or field.type != "number" else place.mismatch(value, wanted)


def _check_integer(value: Any, wanted: str, place: FieldLocation) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return place.mismatch(value, wanted)
    limit = _RANGES.get(wanted, 2**31)
    if isinstance(value, float) or not -limit <= value < limit:
        return place.mismatch(value, wanted, number=True)
    return None


def _check_quantity(value: Any) -> str | None:
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            parse_quantity(value)
            return None
    except QuantityError:
        pass
    return _QUANTITY_RULE


def _check_int_or_string(value: Any, place: FieldLocation) -> str | None:
    return None if isinstance(value, str) else _check_integer(value, "int32", place)


def _check_time(value: Any, place: FieldLocation, *, micro: bool) -> str | None:
    if not isinstance(value, str):
        return place.mismatch(value, "string")
    found = (_MICRO if micro else _TIME).fullmatch(value)
    if found is not None:
        part = _part_out_of_range(found)
        return f'parsing time "{value}": {part} out of range' if part else None
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    rest, part = (value, "2006") if not micro else _unparsed_rest(value)
    return f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{part}"'


def _part_out_of_range(found: re.Match[str]) -> str:
    """Return the part of a time that is out of range, empty if none is."""
    for name, group, least, most in _PARTS:
        if found[group] is not None and not least <= int(found[group]) <= most:
            return name
    year, month, day = int(found[0][:4]), int(found[1]), int(found[2])
    # Python's calendar begins with the year 1; the year 0 is a leap year like 400.
    return "day" if day > calendar.monthrange(year or 400, month)[1] else ""


def _unparsed_rest(value: str) -> tuple[str, str]:
    """Return what cannot be parsed of a MicroTime, and the layout element expected there."""
    return (value[19:], ".000000") if _TIME.fullmatch(value) else (value, "2006")


def _check_base64(value: str) -> str | None:
    text = value.replace("\n", "").replace("\r", "")
    found = _BASE64.match(text)
    end = found.end() if found else 0
    return None if end == len(text) else f"illegal base64 data at input byte {end}"


def first_conversion_error(obj: dict[str, Any], type_name: str) -> str | None:
    """Return the same as `first_type_error`, in the words for strategic merge patches."""
    for key, value in obj.items():
        field = types.load()[type_name].fields.get(key)
        if field is not None and value is not None:
            fault = _conversion_error(value, field)
            if fault is not None:
                return fault
    return None


def _conversion_error(value: Any, field: FieldInfo) -> str | None:
    go_kinds = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
    kind = go_kinds.get(type(value), "float64")
    if field.type == "array":
        if not isinstance(value, list):
            return f"cannot restore slice from {kind}"
        inner = field.items
        return _first_found(
            _conversion_error(item, inner) for item in value if item is not None and inner
        )
    if field.type == "object":
        if not isinstance(value, dict):
            return f"cannot restore map from {kind}"
        values = field.values
        return _first_found(
            _conversion_error(item, values)
            for item in value.values()
            if item is not None and values
        )
    if field.ref and types.load()[field.ref].fields:
        if not isinstance(value, dict):
            return f"cannot restore struct from: {kind}"
        return first_conversion_error(value, field.ref)
    fault = _check_value(value, field, FieldLocation("", ""))
    if fault is None or not fault.startswith("json:"):
        return fault
    wanted = go_type(field)
    if wanted == "string" and kind in ("int64", "float64"):
        return f"cannot convert {kind} to string"
    return f"unrecognized type: {wanted}"


def _first_found(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


def go_type(field: FieldInfo) -> str:
    """Return the Go type of a field as messages name it."""
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


def _json_type(value: Any) -> str:
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
