"""Types of fields: every value has the type of its field; the paths of unknown fields."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from everynode.api.quantity import QuantityError, parse_quantity
from everynode.api.types import (
    INT_OR_STRING,
    OBJECT_META,
    POD_TEMPLATE,
    QUANTITY,
    FieldInfo,
    TypeInfo,
    lookup,
)
from everynode.api.validation.field_errors import (
    FieldErrors,
    invalid,
    is_int,
    required,
    too_long,
    too_many,
    unsupported,
    wrong_type,
)

_PYTHON_TYPES: Final[dict[str, type[Any]]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
}
_BOUNDS: Final = {"int32": 2**31, "int64": 2**63}


# Below these types the schema of the Advanced DaemonSet is as lenient as the native API.
_NATIVE_TYPES: Final = frozenset({OBJECT_META, POD_TEMPLATE})


def check_field_types(value: object, name: str, path: str = "") -> FieldErrors:
    """An error for each value of the wrong type, as in the native API: null is absent."""
    yield from _check_object(value, name, path, strict=False)


def check_advanced_field_types(value: object, name: str, path: str = "") -> FieldErrors:
    """The same for the Advanced DaemonSet, with required fields, enums and limits."""
    yield from _check_object(value, name, path, strict=True)


def _check_object(value: object, name: str, path: str, *, strict: bool) -> FieldErrors:
    if not isinstance(value, dict):
        yield wrong_type(path, value, "object")
        return
    strict = strict and name not in _NATIVE_TYPES
    for key, field in lookup(name).fields.items():
        here = f"{path}.{key}" if path else key
        item = value.get(key)
        if item is not None:
            yield from _check_field(item, field, here, strict=strict)
        elif strict and field.required:
            yield required(here)


class UnknownField(NamedTuple):
    """A field that its type does not have, and the name that was perhaps meant."""

    path: str
    suggestion: str  # empty if no name is near


def unknown_fields(value: object, name: str, path: str = "") -> Iterator[UnknownField]:
    """All fields that the named type does not have."""
    info = lookup(name)
    if not isinstance(value, dict) or not info.fields:
        return
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        field = info.fields.get(key)
        if field is None:
            near = difflib.get_close_matches(key, info.fields, n=1)
            yield UnknownField(inner, near[0] if near else "")
        else:
            yield from _unknown(item, field, inner)


def _unknown(value: object, field: FieldInfo, path: str) -> Iterator[UnknownField]:
    if field.ref:
        yield from unknown_fields(value, field.ref, path)
    elif field.items is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, field.items, f"{path}[{index}]")
    elif field.values is not None and isinstance(value, dict):
        for key, item in value.items():
            yield from _unknown(item, field.values, f"{path}.{key}")


def _check_field(value: Any, field: FieldInfo, path: str, *, strict: bool) -> FieldErrors:
    if field.ref == QUANTITY:
        yield from _check_quantity(value, path)
    elif field.ref == INT_OR_STRING:
        yield from _check_int_or_string(value, path, strict=strict)
    elif field.ref:
        yield from _check_reference(value, field.ref, path, strict=strict)
    elif field.type in ("integer", "number"):
        yield from _check_number(value, field, path, strict=strict)
    elif not isinstance(value, _PYTHON_TYPES.get(field.type, object)):
        yield wrong_type(path, value, field.type)
    else:
        yield from _check_content(value, field, path, strict=strict)
        if strict:
            yield from _check_limits(value, field, path)


def _check_content(value: Any, field: FieldInfo, path: str, *, strict: bool) -> FieldErrors:
    if field.items is not None:
        for index, item in enumerate(value):
            yield from _check_field(item, field.items, f"{path}[{index}]", strict=strict)
    elif field.values is not None:
        for key, item in value.items():
            if item is not None:
                yield from _check_field(item, field.values, f"{path}.{key}", strict=strict)


def _check_limits(value: Any, field: FieldInfo, path: str) -> FieldErrors:
    if field.enum and value not in field.enum:
        yield unsupported(path, value, field.enum)
    if field.limit and len(value) > field.limit:
        if isinstance(value, str):
            yield too_long(path, field.limit)
        else:
            yield too_many(path, len(value), field.limit)
    if field.pattern and not re.match(field.pattern.replace("$", r"\Z"), value):
        yield invalid(path, value, f"{path} in body should match '{field.pattern}'")


def _check_reference(value: Any, name: str, path: str, *, strict: bool) -> FieldErrors:
    info: TypeInfo = lookup(name)
    if info.type == "string":
        if not isinstance(value, str):
            yield wrong_type(path, value, "string")
    elif info.type == "object":
        yield from _check_object(value, name, path, strict=strict)


def _check_number(value: Any, field: FieldInfo, path: str, *, strict: bool) -> FieldErrors:
    if field.type == "number" and isinstance(value, float):
        return
    # The rules of the Advanced kind check the range themselves.
    bound = 2**63 if strict else _BOUNDS.get(field.format, 2**63)
    if not is_int(value):
        yield wrong_type(path, value, field.type)
    elif not -bound <= value < bound:
        yield invalid(path, value, f"must fit into {field.format or 'int64'}")


def _check_quantity(value: Any, path: str) -> FieldErrors:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield wrong_type(path, value, "string")
        return
    try:
        parse_quantity(value)
    except QuantityError as error:
        yield invalid(path, value, str(error))


def _check_int_or_string(value: Any, path: str, *, strict: bool) -> FieldErrors:
    if isinstance(value, str):
        return
    if not is_int(value):
        yield wrong_type(path, value, "integer,string")
    elif not strict and not -(2**31) <= value < 2**31:
        yield invalid(path, value, "must fit into int32")
