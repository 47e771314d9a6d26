"""Field errors: constructors with the API server's reasons and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError

Object = dict[str, Any]
FieldErrors = Iterator[FieldError]

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
    """Stands for a value that the message leaves out."""


OMITTED: Final = Omitted()


def invalid(path: str, value: object, detail: str) -> FieldError:
    """The value has the right type but is not allowed."""
    return FieldError(path, _message("Invalid value", value, detail), INVALID)


def wrong_type(path: str, value: object, expected: str) -> FieldError:
    """The value does not have the type of the field."""
    found = json_type(value)
    message = f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'
    return FieldError(path, message, TYPE_INVALID)


def required(path: str, detail: str = "") -> FieldError:
    """The value is missing."""
    return FieldError(path, _message("Required value", OMITTED, detail), REQUIRED)


def forbidden(path: str, detail: str) -> FieldError:
    """The value must not be there."""
    return FieldError(path, _message("Forbidden", OMITTED, detail), FORBIDDEN)


def duplicate(path: str, value: object) -> FieldError:
    """The value must be unique and is used already."""
    return FieldError(path, _message("Duplicate value", value, ""), DUPLICATE)


def not_found(path: str, value: object, detail: str = "") -> FieldError:
    """The value refers to something that does not exist."""
    return FieldError(path, _message("Not found", value, detail), NOT_FOUND)


def unsupported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """The value is not one of the supported ones."""
    listed = "supported values: " + ", ".join(render(each) for each in supported)
    return FieldError(path, _message("Unsupported value", value, listed), NOT_SUPPORTED)


def too_long(path: str, limit: int) -> FieldError:
    """The value has too many bytes; the message does not repeat it."""
    detail = f"may not be more than {limit} bytes"
    return FieldError(path, _message("Too long", OMITTED, detail), TOO_LONG)


def too_many(path: str, number: int, limit: int) -> FieldError:
    """The list has too many items."""
    return FieldError(
        path, _message("Too many", number, f"must have at most {limit} items"), TOO_MANY
    )


def invalid_each(path: str, value: object, details: Iterable[str]) -> FieldErrors:
    """One error for each detail."""
    return (invalid(path, value, detail) for detail in details)


def at_least_zero(path: str, value: object) -> FieldErrors:
    """An error for a number below zero; other values pass."""
    if is_int(value) and value < 0:  # type: ignore[operator]
        yield invalid(path, value, AT_LEAST_0)


def is_int(value: object) -> bool:
    """Whether the value is an integer in JSON: in Python a bool is an int."""
    return isinstance(value, int) and not isinstance(value, bool)


def summarise(errors: Sequence[FieldError]) -> str:
    """All errors in one line, as in the message of a Status, without duplicates."""
    printed = list(dict.fromkeys(str(error) for error in errors))
    return printed[0] if len(printed) == 1 else f"[{', '.join(printed)}]"


def render(value: object) -> str:
    """A value as messages print it: as JSON."""
    return msgspec.json.encode(value, order="deterministic").decode()


def json_type(value: object) -> str:
    """The JSON Schema type of a value."""
    for name, kind in _JSON_TYPES:
        if isinstance(value, kind):
            return name
    return "null"


# bool before int: in Python a bool is an int.
_JSON_TYPES: Final[tuple[tuple[str, type | tuple[type, ...]], ...]] = (
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
