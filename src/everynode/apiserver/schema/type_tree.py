"""Type trees for merging: what is a scalar, a list or a map, and what is atomic.

Built from the table of types for built-in kinds and from the schema of the
CustomResourceDefinition for custom resources; without a schema, deduced from the value itself.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from everynode.api import types
from everynode.apiserver.schema.fast_check import FastCheck, fast_check_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everynode.api.types import FieldInfo, TypeInfo

RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"

# Types of scalars; ANY allows each of them.
STRING: Final = "string"
NUMBER: Final = "numeric"
BOOLEAN: Final = "boolean"
ANY: Final = "any"

ATOMIC: Final = "atomic"
SET: Final = "set"
MAP: Final = "map"

# Optional lists that Go writes as null if they are empty; the OpenAPI document does not show it.
_WRITTEN_AS_NULL: Final = frozenset(
    {("io.k8s.api.rbac.v1.ClusterRole", "rules"), ("io.k8s.api.rbac.v1.Role", "rules")}
)

Value = Any  # a decoded JSON value


class TypeNode:
    """One node of a type tree: a scalar, a list or a map; an untyped node may be any of them."""

    __slots__ = (
        "atomic",
        "defaults",
        "fast_checks",
        "fields",
        "is_list",
        "is_map",
        "items",
        "list_map_keys",
        "list_type",
        "name",
        "prunes",
        "scalar",
        "values",
        "zero_values",
    )

    def __init__(self, *, name: str = "", scalar: str = "") -> None:
        self.name = name
        self.scalar = scalar
        self.is_list = False
        self.list_type = ATOMIC  # how a list merges: ATOMIC, SET or MAP
        self.list_map_keys: tuple[str, ...] = ()  # the fields that identify the items of a MAP list
        self.items: TypeNode = self
        self.is_map = False
        self.atomic = False  # a map is replaced, not merged
        self.fields: dict[str, TypeNode] = {}
        self.values: TypeNode | None = None  # of keys that are not in `fields`; None forbids them
        # Writes drop keys that are not in `fields`, although apply deduces their type: a real
        # server prunes an object without properties, and merges it as an untyped map.
        self.prunes = False
        # The values of fields that are always present, if they were not set.
        self.zero_values: dict[str, Value] = {}
        # The values of the keys of a MAP list, if an item omits them.
        self.defaults: dict[str, Value] = {}
        # Members of a custom resource that a fast check can find valid.
        self.fast_checks: dict[str, FastCheck] = {}

    def field(self, key: str) -> TypeNode | None:
        """Return the node under a key of a map, None if the key is not allowed."""
        return self.fields.get(key, self.values)


def _untyped_node(*, atomic: bool) -> TypeNode:
    type_node = TypeNode(scalar=ANY)
    type_node.is_list = type_node.is_map = True
    type_node.atomic = atomic
    type_node.values = type_node
    return type_node


ATOMIC_ANY: Final = _untyped_node(atomic=True)  # any value; replaced, not merged
DEDUCED: Final = _untyped_node(atomic=False)  # any value; maps merge, lists are atomic
DEDUCED.items = ATOMIC_ANY


@cache
def type_tree_of(type_name: str) -> TypeNode:
    """Return the type tree of a type of the table."""
    return _TreeBuilder().named(type_name)


class _TreeBuilder:
    """Makes type trees from the table of types, one per name: types may contain themselves."""

    def __init__(self) -> None:
        self._named: dict[str, TypeNode] = {}

    def named(self, name: str) -> TypeNode:
        known = self._named.get(name)
        if known is not None:
            return known
        if name == RAW_EXTENSION:
            return ATOMIC_ANY
        type_node = self._named[name] = TypeNode(name=name)
        self._fill(type_node, types.load()[name])
        return type_node

    def _fill(self, type_node: TypeNode, info: TypeInfo) -> None:
        if info.type in ("", "object") and not info.one_of:
            type_node.is_map = True
            type_node.atomic = info.map_type == ATOMIC
            type_node.fields = {name: self._field(field) for name, field in info.fields.items()}
            type_node.zero_values = _zero_values(type_node.name, info)
            type_node.defaults = {name: field.default for name, field in info.fields.items()}
            if not info.fields:
                type_node.values = DEDUCED
        if info.type != "object":
            type_node.scalar = _scalar(info.type, info.format)
            type_node.is_list = not info.type and not info.one_of
            type_node.items = ATOMIC_ANY

    def _field(self, field: FieldInfo) -> TypeNode:
        if field.ref:
            type_node = self.named(field.ref)
            return _copy_with_map_type(type_node, field.map_type) if field.map_type else type_node
        type_node = TypeNode()
        if field.type == "array":
            type_node.is_list = True
            type_node.list_type, type_node.list_map_keys = _list_type(field)
            type_node.items = self._field(field.items) if field.items else ATOMIC_ANY
        elif field.type == "object":
            type_node.is_map = True
            type_node.atomic = field.map_type == ATOMIC
            type_node.values = self._field(field.values) if field.values else DEDUCED
        elif field.type:
            type_node.scalar = _scalar(field.type, field.format)
        else:
            return DEDUCED
        return type_node


def _zero_values(type_name: str, info: TypeInfo) -> dict[str, Value]:
    """Return the fields that Go writes even if nothing is set, with what it writes then."""
    return {
        name: field.default
        for name, field in info.fields.items()
        if field.required
        or (field.default is not None and not field.default)
        or (type_name, name) in _WRITTEN_AS_NULL
    }


def _list_type(field: FieldInfo) -> tuple[str, tuple[str, ...]]:
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


def _copy_with_map_type(type_node: TypeNode, map_type: str) -> TypeNode:
    copy = TypeNode(name=type_node.name, scalar=type_node.scalar)
    copy.is_map, copy.atomic = type_node.is_map, map_type == ATOMIC
    copy.fields, copy.values = type_node.fields, type_node.values
    copy.zero_values, copy.defaults = type_node.zero_values, type_node.defaults
    return copy


def type_tree_of_schema(schema: Mapping[str, Value]) -> TypeNode:
    """Return the type tree of an OpenAPI v3 schema; metadata is typed as in every object."""
    type_node = _from_schema(schema, open_map=False)
    type_node.fields = {**type_node.fields, **_common_members()}
    for name, below in schema.get("properties", {}).items():
        fit = fast_check_for(below) if name not in _common_members() else None
        if fit is not None:
            type_node.fast_checks[name] = fit
    return type_node


@cache
def _common_members() -> dict[str, TypeNode]:
    """Return the members that every object has, whatever its schema says."""
    text = TypeNode(scalar=STRING)
    return {"apiVersion": text, "kind": text, "metadata": _object_meta()}


def custom_type_tree(schema: Mapping[str, Value] | None) -> TypeNode:
    """Return the type tree of custom resources, deduced from the values if there is no schema."""
    if schema is not None:
        return _cached_tree(schema)
    type_node = TypeNode()
    type_node.is_map = True
    type_node.values = DEDUCED
    type_node.fields = {"metadata": _object_meta()}
    return type_node


# By id() of the schema, which is one object for as long as its definition exists. The schema is
# kept beside its tree, so that no other object can get the same id.
_TREES: Final[OrderedDict[int, tuple[Mapping[str, Value], TypeNode]]] = OrderedDict()
_MAX_TREES: Final = 256


def _cached_tree(schema: Mapping[str, Value]) -> TypeNode:
    """Return the type tree of a schema, cached: a large one takes tens of milliseconds."""
    found = _TREES.get(id(schema))
    if found is None:
        found = _TREES[id(schema)] = (schema, type_tree_of_schema(schema))
        if len(_TREES) > _MAX_TREES:
            _TREES.popitem(last=False)
    return found[1]


@cache
def _object_meta() -> TypeNode:
    return _copy_with_map_type(type_tree_of(types.OBJECT_META), "granular")


def _from_schema(schema: Mapping[str, Value], *, open_map: bool) -> TypeNode:
    open_map = open_map or schema.get("x-kubernetes-preserve-unknown-fields") is True
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string") is True:
        return TypeNode(scalar=ANY)
    type_node = TypeNode(scalar="" if kind in ("object", "array") else _scalar(kind, ""))
    if kind in ("", "array"):
        type_node.is_list = True
        type_node.list_type = schema.get("x-kubernetes-list-type", ATOMIC)
        type_node.list_map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        items = schema.get("items")
        type_node.items = _from_schema(items, open_map=open_map) if items else ATOMIC_ANY
    if kind in ("", "object"):
        _fill_map(type_node, schema, open_map=open_map)
    return type_node


def _fill_map(type_node: TypeNode, schema: Mapping[str, Value], *, open_map: bool) -> None:
    type_node.is_map = True
    type_node.atomic = schema.get("x-kubernetes-map-type") == ATOMIC
    properties: Mapping[str, Mapping[str, Value]] = schema.get("properties", {})
    type_node.fields = {
        name: _from_schema(inner, open_map=open_map) for name, inner in properties.items()
    }
    if schema.get("x-kubernetes-embedded-resource") is True:
        type_node.fields |= _common_members()
    type_node.defaults = {name: inner.get("default") for name, inner in properties.items()}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        type_node.values = _from_schema(additional, open_map=open_map)
    elif additional is True or (additional is None and (open_map or not properties)):
        type_node.values = DEDUCED
        type_node.prunes = additional is None and not open_map
