"""Whether a value fits a schema, answered in one go for plain schemas: yes, or look closer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

Schema = Mapping[str, Any]

_SCALARS: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SAID: Final = frozenset({"description", "default", "format", "type", "x-kubernetes-validations"})
_LISTING: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_OBJECT: Final = _SAID | {"properties", "required"}
_LIST: Final = _SAID | {"items", _LISTING, _KEYS}


class Fit:
    """A schema of types, required members, and lists whose items are told apart by one member."""

    __slots__ = ("_keyed", "_type")

    def __init__(self, made: Any, keyed: tuple[tuple[str, str], ...]) -> None:
        self._type = made
        self._keyed = keyed

    def takes(self, value: Any) -> bool:
        """Whether nothing in a value is unknown or forbidden; never wrong when it says yes."""
        try:
            msgspec.convert(value, self._type)
        except (msgspec.ValidationError, RecursionError):
            return False
        for name, key in self._keyed:
            names = [item.get(key) for item in value.get(name, ())]
            if len(set(names)) < len(names):
                return False
        return True


def fit_of(schema: Schema) -> Fit | None:
    """The quick answer for a schema; None if it says more than can be asked in one go."""
    if schema.get("type") != "object":
        return None
    try:
        return Fit(_type(schema, depth=0), tuple(_keyed(schema.get("properties") or {})))
    except _MoreThanTypes:
        return None


class _MoreThanTypes(Exception):
    """A schema that a type cannot stand for."""


def _keyed(properties: Schema) -> Iterator[tuple[str, str]]:
    """The lists among the members, and what tells their items apart."""
    for name, below in properties.items():
        if below.get(_LISTING) == "map":
            keys: Sequence[str] = below.get(_KEYS) or ()
            if len(keys) != 1:
                raise _MoreThanTypes
            yield name, keys[0]


def _type(schema: Schema, *, depth: int) -> Any:
    kind, said = schema.get("type", ""), schema.keys()
    if kind == "object" and said <= _OBJECT and schema.get("properties"):
        return _struct(schema, depth=depth)
    if kind == "array" and said <= _LIST and schema.get("items"):
        listing = schema.get(_LISTING, "atomic")
        if listing != "atomic" and not (listing == "map" and depth == 1):
            raise _MoreThanTypes
        return list[_type(schema["items"], depth=depth + 1)]  # type: ignore[misc]
    if kind in _SCALARS and said <= _SAID:
        return _SCALARS[kind]
    raise _MoreThanTypes


def _struct(schema: Schema, *, depth: int) -> type[msgspec.Struct]:
    properties, required = schema["properties"], schema.get("required") or ()
    if not properties.keys() >= set(required):
        raise _MoreThanTypes
    fields: list[tuple[str, Any, Any]] = []
    rename = {}
    for index, (name, below) in enumerate(properties.items()):
        default = msgspec.NODEFAULT if name in required else msgspec.UNSET
        rename[f"f{index}"] = name
        fields.append((f"f{index}", _type(below, depth=depth + 1), default))
    return msgspec.defstruct(
        "Fitting", fields, rename=rename, forbid_unknown_fields=True, kw_only=True, gc=False
    )
