"""How a fault is worded: as the API server words it, so that its documentation applies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault

Object = dict[str, Any]
Faults = Iterator[Fault]

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
FORBIDDEN: Final = "FieldValueForbidden"
DUPLICATE: Final = "FieldValueDuplicate"
NOT_FOUND: Final = "FieldValueNotFound"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

AT_LEAST_0: Final = "must be greater than or equal to 0"
GREATER_THAN_0: Final = "must be greater than 0"
GREATER_THAN_ZERO: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"


class Omitted:
    """Stands for a value that is not worth printing."""


OMITTED: Final = Omitted()


def invalid(path: str, value: object, detail: str) -> Fault:
    """The value has the right type, and is wrong."""
    return Fault(path, _message("Invalid value", value, detail), INVALID)


def wrong_type(path: str, value: object, expected: str) -> Fault:
    """The value has another type than the field."""
    found = json_type(value)
    message = f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'
    return Fault(path, message, TYPE_INVALID)


def required(path: str, detail: str = "") -> Fault:
    """The value is missing."""
    return Fault(path, _message("Required value", OMITTED, detail), REQUIRED)


def forbidden(path: str, detail: str) -> Fault:
    """The value must not be there."""
    return Fault(path, _message("Forbidden", OMITTED, detail), FORBIDDEN)


def duplicate(path: str, value: object) -> Fault:
    """The value is there already and must be unique."""
    return Fault(path, _message("Duplicate value", value, ""), DUPLICATE)


def not_found(path: str, value: object, detail: str = "") -> Fault:
    """The value names something that is not there."""
    return Fault(path, _message("Not found", value, detail), NOT_FOUND)


def unsupported(path: str, value: object, supported: Sequence[str]) -> Fault:
    """The value is none of those that are allowed."""
    listed = "supported values: " + ", ".join(render(each) for each in supported)
    return Fault(path, _message("Unsupported value", value, listed), NOT_SUPPORTED)


def too_long(path: str, limit: int) -> Fault:
    """The value has too many bytes; it is not repeated."""
    detail = f"may not be more than {limit} bytes"
    return Fault(path, _message("Too long", OMITTED, detail), TOO_LONG)


def too_many(path: str, number: int, limit: int) -> Fault:
    """The list has too many items."""
    return Fault(path, _message("Too many", number, f"must have at most {limit} items"), TOO_MANY)


def invalid_each(path: str, value: object, details: Iterable[str]) -> Faults:
    """One fault for each thing that is wrong with the value."""
    return (invalid(path, value, detail) for detail in details)


def at_least_zero(path: str, value: object) -> Faults:
    """A fault for a number below zero; anything else passes."""
    if is_int(value) and value < 0:  # type: ignore[operator]
        yield invalid(path, value, AT_LEAST_0)


def is_int(value: object) -> bool:
    """Whether this is an integer to the API; to Python a bool is one, too."""
    return isinstance(value, int) and not isinstance(value, bool)


def summarise(faults: Sequence[Fault]) -> str:
    """All faults in one line, as in the message of a Status; doubles are told once."""
    told = list(dict.fromkeys(str(fault) for fault in faults))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def render(value: object) -> str:
    """A value as it is printed in a message: quoted text, plain scalars, JSON for the rest."""
    return msgspec.json.encode(value, order="deterministic").decode()


def json_type(value: object) -> str:
    """What JSON Schema calls the type of a value."""
    for name, kind in _KINDS:
        if isinstance(value, kind):
            return name
    return "null"


# A bool is an int to Python: it must be asked for first.
_KINDS: Final[tuple[tuple[str, type | tuple[type, ...]], ...]] = (
    ("boolean", bool),
    ("integer", int),
    ("number", float),
    ("string", str),
    ("array", (list, tuple)),
    ("object", dict),
)


def _message(kind: str, value: object, detail: str) -> str:
    parts = [kind]
    if value is not OMITTED:
        parts.append(render(value))
    if detail:
        parts.append(detail)
    return ": ".join(parts)
