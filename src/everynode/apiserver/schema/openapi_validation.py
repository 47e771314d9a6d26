"""OpenAPI schemas of custom resources: defaulting and validation.

CEL rules (`x-kubernetes-validations`) are stored and shown, but not evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.apiserver.schema.patterns import PatternError, compile_pattern

Schema = Mapping[str, Any]

_PYTHON_TYPES: Final[dict[str, tuple[type[Any], ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_META: Final = ("metadata", "apiVersion", "kind")


class Defaulter:
    """Sets the defaults of a schema; holds only the parts of it that have defaults."""

    __slots__ = ("_extra", "_fields", "_items", "_known")

    def __init__(self) -> None:
        # Per field: its default as JSON (empty: none), whether it is nullable, and what is below.
        self._fields: dict[str, tuple[bytes, bool, Defaulter | None]] = {}
        self._known: Mapping[str, Any] = {}
        self._extra: Defaulter | None = None  # for additionalProperties
        self._items: Defaulter | None = None

    @classmethod
    def from_schema(cls, schema: Schema, *, top: bool = False) -> Defaulter | None:
        """Return the defaulter of a schema, None if the schema has no defaults."""
        defaulter = cls()
        defaulter._known = schema.get("properties") or {}
        for name, below in defaulter._known.items():
            inner = None if top and name in _META else cls.from_schema(below)
            default = b"" if "default" not in below else msgspec.json.encode(below["default"])
            if inner is not None or (default and not (top and name in _META)):
                defaulter._fields[name] = (default, bool(below.get("nullable")), inner)
        extra, items = schema.get("additionalProperties"), schema.get("items")
        defaulter._extra = cls.from_schema(extra) if isinstance(extra, dict) else None
        defaulter._items = cls.from_schema(items) if isinstance(items, dict) else None
        return defaulter if defaulter._fields or defaulter._extra or defaulter._items else None

    def apply_defaults(self, value: Any) -> Any:
        """Return the value with its defaults; the argument is not changed."""
        if isinstance(value, dict):
            return self._default_map(value)
        if isinstance(value, list) and self._items is not None:
            return [self._items.apply_defaults(item) for item in value]
        return value

    def _default_map(self, value: dict[str, Any]) -> dict[str, Any]:
        defaulted = dict(value)
        for name, (default, nullable, inner) in self._fields.items():
            if default and (name not in defaulted or (defaulted[name] is None and not nullable)):
                defaulted[name] = msgspec.json.decode(default)
            if inner is not None and name in defaulted:
                defaulted[name] = inner.apply_defaults(defaulted[name])
        if self._extra is not None:
            for name, item in defaulted.items():
                if name not in self._known:
                    defaulted[name] = self._extra.apply_defaults(item)
        return defaulted


def validate(
    value: Any, schema: Schema, path: str = "", *, top: bool = True
) -> Iterator[FieldError]:
    """Yield every fault of a value."""
    if value is None and schema.get("nullable"):
        return
    if not _has_type(value, schema):
        yield _type_fault(value, schema, path)
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
        yield from validate(value, part, path, top=top)
    yield from _check_choice(value, schema, path)


def _has_type(value: Any, schema: Schema) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    expected = _PYTHON_TYPES.get(schema.get("type", ""))
    if expected is None:
        return True
    if isinstance(value, bool):
        return bool in expected
    if int in expected and isinstance(value, float):
        return value.is_integer() or float in expected
    return isinstance(value, expected)


def _type_fault(value: Any, schema: Schema, path: str) -> FieldError:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}
    found = names.get(type(value), "null" if value is None else "number")
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    message = f'Invalid value: "{found}": {_in_body(path)} must be of type {wanted}: "{found}"'
    return FieldError(path or "<nil>", message, "FieldValueTypeInvalid")


def _in_body(path: str) -> str:
    return f"{path} in body"


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _check_enum(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        listed = ", ".join(_json_text(each) for each in allowed)
        message = f"Unsupported value: {_json_text(value)}: supported values: {listed}"
        yield FieldError(path, message, "FieldValueNotSupported")


def _check_object(
    value: dict[str, Any], schema: Schema, path: str, *, top: bool
) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    missing = [
        name for name in schema.get("required") or () if _is_missing(value, name, properties)
    ]
    for name in missing:
        yield FieldError(f"{path}.{name}" if path else name, "Required value", "FieldValueRequired")
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        if name in missing:
            continue
        below = properties.get(name, extra if isinstance(extra, dict) else None)
        if below is not None and not (top and name in _META):
            inner = f"{path}.{name}" if path else name
            yield from validate(item, below, inner, top=False)
    yield from _check_size(len(value), schema, path, "Properties", "properties")


def _is_missing(value: dict[str, Any], name: str, properties: Schema) -> bool:
    """Whether a property is missing; null counts as missing unless it is nullable."""
    if name not in value:
        return True
    return value[name] is None and not (properties.get(name) or {}).get("nullable", False)


def _check_list(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from validate(item, items, f"{path}[{index}]", top=False)
    yield from _check_size(len(value), schema, path, "Items", "items")
    yield from _check_unique(value, schema, path)


def _check_unique(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        keys = [_json_text(item) for item in value]
    elif kind == "map":
        names = schema.get("x-kubernetes-list-map-keys") or ()
        keys = [
            _json_text({name: item.get(name) for name in names if name in item})
            for item in value
            if isinstance(item, dict)
        ]
    else:
        return
    seen = set[str]()
    for index, key in enumerate(keys):
        if key not in seen:
            seen.add(key)
        else:
            message = f"Duplicate value: {key}"
            yield FieldError(f"{path}[{index}]", message, "FieldValueDuplicate")


def _check_size(
    size: int, schema: Schema, path: str, suffix: str, things: str
) -> Iterator[FieldError]:
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if least is not None and size < least:
        message = f"Invalid value: {size}: {_in_body(path)} should have at least {least} {things}"
        yield FieldError(path, message)
    if most is not None and size > most:
        message = f"Too many: {size}: must have at most {most} {things}"
        yield FieldError(path, message, "FieldValueTooMany")


def _check_text(value: str, schema: Schema, path: str) -> Iterator[FieldError]:
    least, most, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if least is not None and len(value) < least:
        message = f"{_in_body(path)} should be at least {least} chars long"
        yield FieldError(path, f"Invalid value: {_json_text(value)}: {message}")
    elif most is not None and len(value) > most:
        message = f"Too long: may not be more than {most} bytes"
        yield FieldError(path, message, "FieldValueTooLong")
    elif pattern is not None and not _matches(pattern, value):
        message = f"{_in_body(path)} should match '{pattern}'"
        yield FieldError(path, f"Invalid value: {_json_text(value)}: {message}")


def _matches(pattern: str, value: str) -> bool:
    """Whether a string matches; an invalid pattern, stored by an older version, matches all."""
    try:
        return compile_pattern(pattern).matches(value)
    except PatternError:
        return True


def _check_number(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    if least is not None:
        open_end = schema.get("exclusiveMinimum")
        if value < least or (open_end and value == least):
            words = "greater than" if open_end else "greater than or equal to"
            message = f"{_in_body(path)} should be {words} {least}"
            yield FieldError(path, f"Invalid value: {_json_text(value)}: {message}")
    if most is not None:
        open_end = schema.get("exclusiveMaximum")
        if value > most or (open_end and value == most):
            words = "less than" if open_end else "less than or equal to"
            message = f"{_in_body(path)} should be {words} {most}"
            yield FieldError(path, f"Invalid value: {_json_text(value)}: {message}")
    if step and value % step:
        message = f"{_in_body(path)} should be a multiple of {step}"
        yield FieldError(path, f"Invalid value: {_json_text(value)}: {message}")


def _check_choice(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Check anyOf, oneOf and not."""
    any_of, one_of, none_of = (schema.get(key) for key in ("anyOf", "oneOf", "not"))
    if any_of and not any(_is_valid(value, part) for part in any_of):
        message = f"{_in_body(path)} must validate at least one schema (anyOf)"
        yield FieldError(path or "<nil>", f'Invalid value: "": "{message}"')
    if one_of and sum(_is_valid(value, part) for part in one_of) != 1:
        message = f"{_in_body(path)} must validate one and only one schema (oneOf)"
        yield FieldError(path or "<nil>", f'Invalid value: "": "{message}"')
    if none_of is not None and _is_valid(value, none_of):
        message = f"{_in_body(path)} must not validate the schema (not)"
        yield FieldError(path or "<nil>", f'Invalid value: "": "{message}"')


def _is_valid(value: Any, schema: Schema) -> bool:
    return next(validate(value, schema, top=False), None) is None
