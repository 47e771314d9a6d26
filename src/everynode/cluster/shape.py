"""What an object looks like to merges: what is a scalar, a list, a map, and what stays whole.

Built from the table of types for the kinds we know, from the schema of a CustomResourceDefinition
for custom ones, and guessed from the value itself where neither says anything.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from everynode.api import types
from everynode.cluster.fitting import Fit, fit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everynode.api.types import FieldInfo, TypeInfo

RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"

# What a scalar may be; ANY takes each of them.
STRING: Final = "string"
NUMBER: Final = "numeric"
BOOLEAN: Final = "boolean"
ANY: Final = "any"

ATOMIC: Final = "atomic"
SET: Final = "set"
MAP: Final = "map"

Value = Any  # a decoded JSON value


class Shape:
    """One node: it may be a scalar, a list or a map, and an untyped one all of them."""

    __slots__ = (
        "atomic",
        "defaults",
        "fields",
        "fits",
        "is_list",
        "is_map",
        "items",
        "keys",
        "listing",
        "name",
        "scalar",
        "values",
        "zeros",
    )

    def __init__(self, *, name: str = "", scalar: str = "") -> None:
        self.name = name
        self.scalar = scalar
        self.is_list = False
        self.listing = ATOMIC  # how a list merges: ATOMIC, SET or MAP
        self.keys: tuple[str, ...] = ()  # what tells the items of a MAP list apart
        self.items: Shape = self
        self.is_map = False
        self.atomic = False  # whether a map is replaced as a whole
        self.fields: dict[str, Shape] = {}
        self.values: Shape | None = None  # of the keys that are no fields; None forbids them
        # Fields that are always there: what they are when nobody set them.
        self.zeros: dict[str, Value] = {}
        # What a key of a MAP list counts as when an item leaves it out.
        self.defaults: dict[str, Value] = {}
        # Members of custom objects of which can be said in one go that they are all right.
        self.fits: dict[str, Fit] = {}

    def field(self, key: str) -> Shape | None:
        """The shape under a key of a map, None if the key is not allowed."""
        return self.fields.get(key, self.values)


def _untyped(*, atomic: bool) -> Shape:
    shape = Shape(scalar=ANY)
    shape.is_list = shape.is_map = True
    shape.atomic = atomic
    shape.values = shape
    return shape


WHOLE: Final = _untyped(atomic=True)  # anything, replaced as a whole
DEDUCED: Final = _untyped(atomic=False)  # anything, maps merge and lists do not
DEDUCED.items = WHOLE


@cache
def shape_of(type_name: str) -> Shape:
    """The shape of a type of the table."""
    return _Table().named(type_name)


class _Table:
    """Turns entries of the table into shapes, one per name: types may contain themselves."""

    def __init__(self) -> None:
        self._named: dict[str, Shape] = {}

    def named(self, name: str) -> Shape:
        known = self._named.get(name)
        if known is not None:
            return known
        if name == RAW_EXTENSION:
            return WHOLE
        shape = self._named[name] = Shape(name=name)
        self._fill(shape, types.load()[name])
        return shape

    def _fill(self, shape: Shape, info: TypeInfo) -> None:
        if info.type in ("", "object") and not info.one_of:
            shape.is_map = True
            shape.atomic = info.map_type == ATOMIC
            shape.fields = {name: self._field(field) for name, field in info.fields.items()}
            shape.zeros = _zeros(info)
            shape.defaults = {name: field.default for name, field in info.fields.items()}
            if not info.fields:
                shape.values = DEDUCED
        if info.type != "object":
            shape.scalar = _scalar(info.type, info.format)
            shape.is_list = not info.type and not info.one_of
            shape.items = WHOLE

    def _field(self, field: FieldInfo) -> Shape:
        if field.ref:
            shape = self.named(field.ref)
            return _with_map_type(shape, field.map_type) if field.map_type else shape
        shape = Shape()
        if field.type == "array":
            shape.is_list = True
            shape.listing, shape.keys = _listing(field)
            shape.items = self._field(field.items) if field.items else WHOLE
        elif field.type == "object":
            shape.is_map = True
            shape.atomic = field.map_type == ATOMIC
            shape.values = self._field(field.values) if field.values else DEDUCED
        elif field.type:
            shape.scalar = _scalar(field.type, field.format)
        else:
            return DEDUCED
        return shape


def _zeros(info: TypeInfo) -> dict[str, Value]:
    return {
        name: field.default
        for name, field in info.fields.items()
        if field.required or (field.default is not None and not field.default)
    }


def _listing(field: FieldInfo) -> tuple[str, tuple[str, ...]]:
    if field.list_type:
        return field.list_type, field.list_map_keys
    if field.patch_strategy.startswith("merge"):
        key = field.patch_merge_key
        return (MAP, (key,)) if key else (SET, ())
    return ATOMIC, ()


def _scalar(kind: str, form: str) -> str:
    if kind == "string" and form in ("", "byte"):
        return STRING
    return {"integer": NUMBER, "number": NUMBER, "boolean": BOOLEAN}.get(kind, ANY)


def _with_map_type(shape: Shape, map_type: str) -> Shape:
    copy = Shape(name=shape.name, scalar=shape.scalar)
    copy.is_map, copy.atomic = shape.is_map, map_type == ATOMIC
    copy.fields, copy.values = shape.fields, shape.values
    copy.zeros, copy.defaults = shape.zeros, shape.defaults
    return copy


def shape_of_schema(schema: Mapping[str, Value]) -> Shape:
    """The shape of custom objects with this OpenAPI v3 schema, metadata typed as everywhere."""
    shape = _from_schema(schema, open_map=False)
    shape.fields = {**shape.fields, **_object_members()}
    for name, below in schema.get("properties", {}).items():
        fit = fit_of(below) if name not in _object_members() else None
        if fit is not None:
            shape.fits[name] = fit
    return shape


@cache
def _object_members() -> dict[str, Shape]:
    """What every object has, whatever its schema says."""
    text = Shape(scalar=STRING)
    return {"apiVersion": text, "kind": text, "metadata": _object_meta()}


def custom_shape(schema: Mapping[str, Value] | None) -> Shape:
    """The shape of custom objects, guessed from their values if there is no schema."""
    if schema is not None:
        return _remembered(schema)
    shape = Shape()
    shape.is_map = True
    shape.values = DEDUCED
    shape.fields = {"metadata": _object_meta()}
    return shape


# A definition's schema is one object for as long as the definition stays; it is kept with its
# shape, so that no other can come to have its id.
_SHAPES: Final[OrderedDict[int, tuple[Mapping[str, Value], Shape]]] = OrderedDict()
_MOST_SHAPES: Final = 256


def _remembered(schema: Mapping[str, Value]) -> Shape:
    """The shape of a schema, worked out once: a large one takes tens of milliseconds."""
    found = _SHAPES.get(id(schema))
    if found is None:
        found = _SHAPES[id(schema)] = (schema, shape_of_schema(schema))
        if len(_SHAPES) > _MOST_SHAPES:
            _SHAPES.popitem(last=False)
    return found[1]


@cache
def _object_meta() -> Shape:
    return _with_map_type(shape_of(types.OBJECT_META), "granular")


def _from_schema(schema: Mapping[str, Value], *, open_map: bool) -> Shape:
    open_map = open_map or schema.get("x-kubernetes-preserve-unknown-fields") is True
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string") is True:
        return Shape(scalar=ANY)
    shape = Shape(scalar="" if kind in ("object", "array") else _scalar(kind, ""))
    if kind in ("", "array"):
        shape.is_list = True
        shape.listing = schema.get("x-kubernetes-list-type", ATOMIC)
        shape.keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        items = schema.get("items")
        shape.items = _from_schema(items, open_map=open_map) if items else WHOLE
    if kind in ("", "object"):
        _fill_map(shape, schema, open_map=open_map)
    return shape


def _fill_map(shape: Shape, schema: Mapping[str, Value], *, open_map: bool) -> None:
    shape.is_map = True
    shape.atomic = schema.get("x-kubernetes-map-type") == ATOMIC
    properties: Mapping[str, Mapping[str, Value]] = schema.get("properties", {})
    shape.fields = {
        name: _from_schema(inner, open_map=open_map) for name, inner in properties.items()
    }
    if schema.get("x-kubernetes-embedded-resource") is True:
        shape.fields |= _object_members()
    shape.defaults = {name: inner.get("default") for name, inner in properties.items()}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        shape.values = _from_schema(additional, open_map=open_map)
    elif additional is True or (additional is None and (open_map or not properties)):
        shape.values = DEDUCED
