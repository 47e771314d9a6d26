"""Field validation: convert what clients send to its type, and report unknown or duplicate fields.

Unknown fields are dropped and reported as problems; `fieldValidation` of the request decides
whether a problem is an error, a warning or ignored. A value of the wrong type is a BodyTypeError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.apiserver.request.json_syntax import (
    KeyValuePairs,
    duplicate_keys,
    may_have_duplicate_keys,
    parse_pairs,
)
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.schema.structs import struct_for
from everynode.apiserver.schema.type_errors import first_type_error
from everynode.apiserver.schema.type_tree import (
    ATOMIC_ANY,
    BOOLEAN,
    DEDUCED,
    NUMBER,
    STRING,
    TypeNode,
    custom_type_tree,
    type_tree_of,
)

Object = dict[str, Any]

_MAX_PROBLEMS: Final = 100
_ZEROS: Final[dict[str, Any]] = {STRING: "", NUMBER: 0, BOOLEAN: False}


class BodyTypeError(ValueError):
    """A body that is not an object of its type."""


def convert_body(value: Object, body: bytes, object_type: ObjectType) -> tuple[Object, list[str]]:
    """Convert a parsed body to its type; return the object and its problems.

    Raises BodyTypeError.
    """
    twice = may_have_duplicate_keys(body, value)
    type_name = object_type.name
    if type_name is None:
        return _convert_custom(value, object_type.schema, parse_pairs(body) if twice else value)
    if not twice:
        obj = try_fast_convert(value, type_name)
        if obj is not None:
            return obj, []
    return _convert_and_report(value, type_name, parse_pairs(body) if twice else value)


def convert_object(
    value: Object, object_type: ObjectType, *, known: Object | None = None
) -> tuple[Object, list[str]]:
    """Convert an object that was never a body, such as the result of a patch.

    Members that are those of `known`, which was converted before, are taken as they are.
    """
    type_name = object_type.name
    if type_name is None:
        return _convert_custom_change(value, object_type.schema, known or {})
    obj = _try_fast_convert_change(value, type_name, known) if known else None
    obj = (
        obj
        or try_fast_convert(value, type_name)
        or try_fast_convert(_drop_condition_nulls(value), type_name)
    )
    return (obj, []) if obj is not None else _convert_and_report(value, type_name, value)


def _try_fast_convert_change(value: Object, type_name: str, known: Object) -> Object | None:
    """Convert only the members that differ from a known object; None if one is invalid."""
    struct = struct_for(type_name)
    same = _unchanged_members(value, known)
    if struct is None or not same:
        return None
    rest = {key: member for key, member in value.items() if key not in same}
    converted = try_fast_convert(rest, type_name) or try_fast_convert(
        _drop_condition_nulls(rest), type_name
    )
    if converted is None:
        return None
    converted |= same
    # The order of the members is that of the type, whichever of them changed.
    return {key: converted[key] for key in struct.__struct_encode_fields__ if key in converted}


def _unchanged_members(value: Object, known: Object) -> Object:
    """Return the members that are identical to those of a known object, except metadata."""
    # Identity, because equality is not enough: True == 1.
    return {
        key: member
        for key, member in value.items()
        if member is known.get(key) and key in known and key != "metadata"
    }


def _drop_condition_nulls(value: Object) -> Object:
    """Drop the nulls in the conditions; patches clear reasons and messages with them."""
    status = value.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(listed, list):
        return value
    kept = [_drop_nulls(each) if isinstance(each, dict) else each for each in listed]
    return {**value, "status": {**status, "conditions": kept}}


def try_fast_convert(value: Object, type_name: str) -> Object | None:
    """Convert a valid object, the usual case; None for any other one."""
    struct = struct_for(type_name)
    if struct is None:
        return None
    try:
        obj: Object = msgspec.to_builtins(msgspec.convert(value, struct))
    except (msgspec.ValidationError, RecursionError):
        return None
    return obj


def _convert_and_report(value: Object, type_name: str, written: Any) -> tuple[Object, list[str]]:
    fault = first_type_error(value, type_name)
    if fault is not None:
        raise BodyTypeError(fault)
    problems: list[str] = []
    clean = _Pruner(problems, drop_null=True).map(written, type_tree_of(type_name), "")
    struct = struct_for(type_name)
    if struct is not None:
        try:
            clean = msgspec.to_builtins(msgspec.convert(clean, struct))
        except msgspec.ValidationError as error:
            raise BodyTypeError(f"json: {error}") from None
    return clean, problems[:_MAX_PROBLEMS]


def _convert_custom(
    value: Object, schema: Mapping[str, Any] | None, written: Any
) -> tuple[Object, list[str]]:
    metadata = value.get("metadata")
    if metadata is not None:
        fault = first_type_error({"metadata": metadata}, _ANY_OBJECT)
        if fault is not None:
            raise BodyTypeError(fault.replace("ObjectMeta.metadata.", "ObjectMeta.", 1))
    problems = [f'duplicate field "{path}"' for path in duplicate_keys(written)]
    clean = _Pruner(problems, drop_null=False).map(value, custom_type_tree(schema), "")
    meta = clean.get("metadata")
    struct = struct_for(types.OBJECT_META)
    if isinstance(meta, dict) and struct is not None:
        kept = _drop_nulls(meta)
        clean["metadata"] = msgspec.to_builtins(msgspec.convert(kept, struct))
    return clean, problems[:_MAX_PROBLEMS]


def _try_fast_custom(value: Object, schema: Mapping[str, Any] | None) -> Object | None:
    """Convert a valid custom resource, the usual case; None for any other one."""
    fast_checks = custom_type_tree(schema).fast_checks
    clean: Object = {}
    for key, member in value.items():
        if key == "metadata":
            converted = try_fast_convert(member, types.OBJECT_META)
        else:
            converted = member if key in fast_checks and fast_checks[key].accepts(member) else None
        if converted is None:
            return None
        clean[key] = converted
    return clean


def _convert_custom_change(
    value: Object, schema: Mapping[str, Any] | None, known: Object
) -> tuple[Object, list[str]]:
    """Convert only the members of a custom resource that differ from a known one."""
    same = _unchanged_members(value, known)
    rest = {key: member for key, member in value.items() if key not in same}
    fitting = _try_fast_custom(rest, schema)
    clean, problems = _convert_custom(rest, schema, rest) if fitting is None else (fitting, [])
    clean |= same
    return {key: clean[key] for key in value if key in clean}, problems


# Custom resources have the same metadata as any built-in type; this one serves to check it.
_ANY_OBJECT: Final = "io.k8s.api.core.v1.ConfigMap"
_MAPS: Final = (KeyValuePairs, dict)


def _drop_nulls(metadata: Object) -> Object:
    return {key: value for key, value in metadata.items() if value is not None}


class _Pruner:
    """Drops the fields that the type does not know, and reports them."""

    def __init__(self, problems: list[str], *, drop_null: bool) -> None:
        self._problems = problems
        self._drop_null = drop_null

    def map(self, written: Any, type_node: TypeNode, path: str) -> Object:
        """Return a map without unknown fields; of duplicate fields the last one counts."""
        clean: Object = {}
        seen: dict[str, bool] = {}
        for key, child in written if isinstance(written, KeyValuePairs) else written.items():
            inner = f"{path}.{key}" if path else key
            if seen.get(key) is False:
                self._problems.append(f'duplicate field "{inner}"')
            seen[key] = key in seen
            below = type_node.field(key)
            if below is None or (type_node.prunes and key not in type_node.fields):
                if len(self._problems) < _MAX_PROBLEMS and not seen[key]:
                    self._problems.append(f'unknown field "{inner}"')
            elif child is not None or not self._drop_null:
                clean[key] = self.value(child, below, inner)
            elif below is type_node.values and below.scalar == STRING:
                clean[key] = ""
        return clean

    def value(self, written: Any, type_node: TypeNode, path: str) -> Any:
        """Return a value without unknown fields."""
        if type_node is ATOMIC_ANY or type_node is DEDUCED:
            return _pairs_to_dicts(written)
        if isinstance(written, _MAPS) and type_node.is_map:
            return self.map(written, type_node, path)
        if (
            isinstance(written, list)
            and not isinstance(written, KeyValuePairs)
            and type_node.is_list
        ):
            return [
                _zero(type_node.items)
                if item is None and self._drop_null
                else self.value(item, type_node.items, f"{path}[{index}]")
                for index, item in enumerate(written)
            ]
        return _pairs_to_dicts(written)


def _zero(type_node: TypeNode) -> Any:
    """Return the value of a null list item: Go leaves the element at its zero value."""
    if type_node.is_map:
        return {}
    if type_node.is_list:
        return []
    return _ZEROS.get(type_node.scalar)


def _pairs_to_dicts(value: Any) -> Any:
    """Return the value with plain dicts in place of pairs."""
    if isinstance(value, KeyValuePairs):
        return {key: _pairs_to_dicts(child) for key, child in value}
    if isinstance(value, list):
        return [_pairs_to_dicts(child) for child in value]
    return value
