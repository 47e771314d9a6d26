"""Fast check of values against simple OpenAPI schemas: valid, or to be validated in full.

A schema of plain types becomes a msgspec struct, so that the check runs in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

Schema = Mapping[str, Any]

_SCALARS: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SCALAR_KEYWORDS: Final = frozenset(
    {"description", "default", "format", "type", "x-kubernetes-validations"}
)
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_OBJECT_KEYWORDS: Final = _SCALAR_KEYWORDS | {"properties", "required"}
_LIST_KEYWORDS: Final = _SCALAR_KEYWORDS | {"items", _LIST_TYPE, _LIST_MAP_KEYS}


class FastCheck:
    """A schema of types, required properties, and map lists with one key."""

    __slots__ = ("_keyed", "_type")

    def __init__(self, expected: Any, keyed: tuple[tuple[str, str], ...]) -> None:
        self._type = expected
        self._keyed = keyed

    def accepts(self, value: Any) -> bool:
        """Whether a value is valid and has no unknown fields; False may also mean "not known"."""
        try:
            msgspec.convert(value, self._type)
        except (msgspec.ValidationError, RecursionError):
            return False
        for name, key in self._keyed:
            names = [item.get(key) for item in value.get(name, ())]
            if len(set(names)) < len(names):
                return False
        return True


def fast_check_for(schema: Schema) -> FastCheck | None:
    """Return the fast check of a schema; None if a type cannot express the schema."""
    if schema.get("type") != "object":
        return None
    try:
        return FastCheck(
            _python_type(schema, depth=0), tuple(_map_lists(schema.get("properties") or {}))
        )
    except _NotExpressible:
        return None


class _NotExpressible(Exception):
    """A schema that a type cannot express."""


def _map_lists(properties: Schema) -> Iterator[tuple[str, str]]:
    """Yield the map lists among the properties, each with its key."""
    for name, below in properties.items():
        if below.get(_LIST_TYPE) == "map":
            keys: Sequence[str] = below.get(_LIST_MAP_KEYS) or ()
            if len(keys) != 1:
                raise _NotExpressible
            yield name, keys[0]


def _python_type(schema: Schema, *, depth: int) -> Any:
    kind, keywords = schema.get("type", ""), schema.keys()
    if kind == "object" and keywords <= _OBJECT_KEYWORDS and schema.get("properties"):
        return _struct(schema, depth=depth)
    if kind == "array" and keywords <= _LIST_KEYWORDS and schema.get("items"):
        list_type = schema.get(_LIST_TYPE, "atomic")
        if list_type != "atomic" and not (list_type == "map" and depth == 1):
            raise _NotExpressible
        return list[_python_type(schema["items"], depth=depth + 1)]  # type: ignore[misc]
    if kind in _SCALARS and keywords <= _SCALAR_KEYWORDS:
        return _SCALARS[kind]
    raise _NotExpressible


def _struct(schema: Schema, *, depth: int) -> type[msgspec.Struct]:
    properties, required = schema["properties"], schema.get("required") or ()
    if not properties.keys() >= set(required):
        raise _NotExpressible
    fields: list[tuple[str, Any, Any]] = []
    rename = {}
    for index, (name, below) in enumerate(properties.items()):
        default = msgspec.NODEFAULT if name in required else msgspec.UNSET
        rename[f"f{index}"] = name
        fields.append((f"f{index}", _python_type(below, depth=depth + 1), default))
    return msgspec.defstruct(
        "Fitting", fields, rename=rename, forbid_unknown_fields=True, kw_only=True, gc=False
    )
