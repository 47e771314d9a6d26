"""Schemas of custom kinds: what they fill in and what they forbid.

CEL rules (`x-kubernetes-validations`) are stored and shown, but not evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault

Schema = Mapping[str, Any]

_PYTHON: Final[dict[str, tuple[type[Any], ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_META: Final = ("metadata", "apiVersion", "kind")


class Filler:
    """What a schema fills in: the parts of it that have defaults, and nothing else."""

    __slots__ = ("_extra", "_fields", "_items", "_known")

    def __init__(self) -> None:
        # The default of each field as JSON (empty: none), whether null may stay, what is below.
        self._fields: dict[str, tuple[bytes, bool, Filler | None]] = {}
        self._known: Mapping[str, Any] = {}
        self._extra: Filler | None = None  # of fields that have no name in the schema
        self._items: Filler | None = None

    @classmethod
    def of(cls, schema: Schema, *, top: bool = False) -> Filler | None:
        """What this schema fills in, None if that is nothing."""
        made = cls()
        made._known = schema.get("properties") or {}
        for name, below in made._known.items():
            inner = None if top and name in _META else cls.of(below)
            default = b"" if "default" not in below else msgspec.json.encode(below["default"])
            if inner is not None or (default and not (top and name in _META)):
                made._fields[name] = (default, bool(below.get("nullable")), inner)
        extra, items = schema.get("additionalProperties"), schema.get("items")
        made._extra = cls.of(extra) if isinstance(extra, dict) else None
        made._items = cls.of(items) if isinstance(items, dict) else None
        return made if made._fields or made._extra or made._items else None

    def fill(self, value: Any) -> Any:
        """The value, filled in; the given one is not changed."""
        if isinstance(value, dict):
            return self._fill_map(value)
        if isinstance(value, list) and self._items is not None:
            return [self._items.fill(item) for item in value]
        return value

    def _fill_map(self, value: dict[str, Any]) -> dict[str, Any]:
        made = dict(value)
        for name, (default, nullable, inner) in self._fields.items():
            if default and (name not in made or (made[name] is None and not nullable)):
                made[name] = msgspec.json.decode(default)
            if inner is not None and name in made:
                made[name] = inner.fill(made[name])
        if self._extra is not None:
            for name, item in made.items():
                if name not in self._known:
                    made[name] = self._extra.fill(item)
        return made


def check(value: Any, schema: Schema, path: str = "", *, top: bool = True) -> Iterator[Fault]:
    """Everything that is wrong with a value."""
    if value is None and schema.get("nullable"):
        return
    if not _right_type(value, schema):
        yield _wrong_type(value, schema, path)
        return
    yield from _check_enum(value, schema, path)
    if isinstance(value, dict):
        yield from _check_object(value, schema, path, top=top)
    elif isinstance(value, list):
        yield from _check_list(value, schema, path)
    elif isinstance(value, str):
        yield from _check_text(value, schema, path)
    elif not isinstance(value, bool):
        yield from _check_number(value, schema, path)
    for part in schema.get("allOf") or ():
        yield from check(value, part, path, top=top)
    yield from _check_choice(value, schema, path)


def _right_type(value: Any, schema: Schema) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    expected = _PYTHON.get(schema.get("type", ""))
    if expected is None:
        return True
    if isinstance(value, bool):
        return bool in expected
    if int in expected and isinstance(value, float):
        return value.is_integer() or float in expected
    return isinstance(value, expected)


def _wrong_type(value: Any, schema: Schema, path: str) -> Fault:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}
    found = names.get(type(value), "null" if value is None else "number")
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    message = f'Invalid value: "{found}": {_here(path)} must be of type {wanted}: "{found}"'
    return Fault(path or "<nil>", message, "FieldValueTypeInvalid")


def _here(path: str) -> str:
    return f"{path} in body"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _check_enum(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        listed = ", ".join(_shown(each) for each in allowed)
        message = f"Unsupported value: {_shown(value)}: supported values: {listed}"
        yield Fault(path, message, "FieldValueNotSupported")


def _check_object(
    value: dict[str, Any], schema: Schema, path: str, *, top: bool
) -> Iterator[Fault]:
    properties = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or () if _lacks(value, name, properties)]
    for name in missing:
        yield Fault(f"{path}.{name}" if path else name, "Required value", "FieldValueRequired")
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        if name in missing:
            continue
        below = properties.get(name, extra if isinstance(extra, dict) else None)
        if below is not None and not (top and name in _META):
            inner = f"{path}.{name}" if path else name
            yield from check(item, below, inner, top=False)
    yield from _check_size(len(value), schema, path, "Properties", "properties")


def _lacks(value: dict[str, Any], name: str, properties: Schema) -> bool:
    """Whether a member is not there; nothing stands for it unless the schema says so."""
    if name not in value:
        return True
    return value[name] is None and not (properties.get(name) or {}).get("nullable", False)


def _check_list(value: list[Any], schema: Schema, path: str) -> Iterator[Fault]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from check(item, items, f"{path}[{index}]", top=False)
    yield from _check_size(len(value), schema, path, "Items", "items")
    yield from _check_unique(value, schema, path)


def _check_unique(value: list[Any], schema: Schema, path: str) -> Iterator[Fault]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        keys = [_shown(item) for item in value]
    elif kind == "map":
        names = schema.get("x-kubernetes-list-map-keys") or ()
        keys = [
            _shown({name: item.get(name) for name in names if name in item})
            for item in value
            if isinstance(item, dict)
        ]
    else:
        return
    for index, key in enumerate(keys):
        if key in keys[:index]:
            message = f"Duplicate value: {key}"
            yield Fault(f"{path}[{index}]", message, "FieldValueDuplicate")


def _check_size(size: int, schema: Schema, path: str, suffix: str, things: str) -> Iterator[Fault]:
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if least is not None and size < least:
        message = f"Invalid value: {size}: {_here(path)} should have at least {least} {things}"
        yield Fault(path, message)
    if most is not None and size > most:
        message = f"Too many: {size}: must have at most {most} {things}"
        yield Fault(path, message, "FieldValueTooMany")


def _check_text(value: str, schema: Schema, path: str) -> Iterator[Fault]:
    least, most, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if least is not None and len(value) < least:
        message = f"{_here(path)} should be at least {least} chars long"
        yield Fault(path, f"Invalid value: {_shown(value)}: {message}")
    elif most is not None and len(value) > most:
        message = f"Too long: may not be more than {most} bytes"
        yield Fault(path, message, "FieldValueTooLong")
    elif pattern is not None:
        compiled = _pattern(pattern)
        if compiled is not None and not compiled.search(value):
            message = f"{_here(path)} should match '{pattern}'"
            yield Fault(path, f"Invalid value: {_shown(value)}: {message}")


@lru_cache(maxsize=512)
def _pattern(text: str) -> re.Pattern[str] | None:
    """A pattern; None for the few that Go understands and Python does not."""
    try:
        return re.compile(text.replace("\\z", "\\Z"))
    except re.error:
        return None


def _check_number(value: float, schema: Schema, path: str) -> Iterator[Fault]:
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    if least is not None:
        open_end = schema.get("exclusiveMinimum")
        if value < least or (open_end and value == least):
            words = "greater than" if open_end else "greater than or equal to"
            message = f"{_here(path)} should be {words} {least}"
            yield Fault(path, f"Invalid value: {_shown(value)}: {message}")
    if most is not None:
        open_end = schema.get("exclusiveMaximum")
        if value > most or (open_end and value == most):
            words = "less than" if open_end else "less than or equal to"
            message = f"{_here(path)} should be {words} {most}"
            yield Fault(path, f"Invalid value: {_shown(value)}: {message}")
    if step and value % step:
        message = f"{_here(path)} should be a multiple of {step}"
        yield Fault(path, f"Invalid value: {_shown(value)}: {message}")


def _check_choice(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    """Of several schemas one must fit, exactly one, or none."""
    any_of, one_of, none_of = (schema.get(key) for key in ("anyOf", "oneOf", "not"))
    if any_of and not any(_fits(value, part) for part in any_of):
        message = f"{_here(path)} must validate at least one schema (anyOf)"
        yield Fault(path or "<nil>", f'Invalid value: "": "{message}"')
    if one_of and sum(_fits(value, part) for part in one_of) != 1:
        message = f"{_here(path)} must validate one and only one schema (oneOf)"
        yield Fault(path or "<nil>", f'Invalid value: "": "{message}"')
    if none_of is not None and _fits(value, none_of):
        message = f"{_here(path)} must not validate the schema (not)"
        yield Fault(path or "<nil>", f'Invalid value: "": "{message}"')


def _fits(value: Any, schema: Schema) -> bool:
    return next(check(value, schema, top=False), None) is None
