"""Reading what clients send: the object as its kind has it, and what is wrong with it.

What the kind does not know is left out and named as a problem; whether a problem refuses the
request, warns or passes is the client's choice (`fieldValidation`). What cannot be read at all is
a DecodeError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.cluster.mismatch import first_mismatch
from everynode.cluster.shape import DEDUCED, STRING, WHOLE, Shape, custom_shape, shape_of
from everynode.cluster.structs import struct_for
from everynode.cluster.syntax import Pairs, SyntaxFault, duplicates, parse, parse_pairs, says_twice

Object = dict[str, Any]

_MAX_PROBLEMS: Final = 100


class DecodeError(ValueError):
    """A body that cannot be read as its kind."""


def decode(
    body: bytes, *, type_name: str | None, schema: Mapping[str, Any] | None = None
) -> tuple[Object, list[str]]:
    """The object in a JSON body, and its unknown and duplicate fields.

    Without a type name the object is a custom one of this schema. Raises DecodeError.
    """
    return check_body(_parsed(body), body, type_name=type_name, schema=schema)


def check_body(
    value: Object, body: bytes, *, type_name: str | None, schema: Mapping[str, Any] | None = None
) -> tuple[Object, list[str]]:
    """The same for a body that is parsed already."""
    twice = says_twice(body, value)
    if type_name is None:
        return _custom(value, schema, parse_pairs(body) if twice else value)
    if not twice:
        obj = converted(value, type_name)
        if obj is not None:
            return obj, []
    return _known(value, type_name, parse_pairs(body) if twice else value)


def check(
    value: Object,
    *,
    type_name: str | None,
    schema: Mapping[str, Any] | None = None,
    known: Object | None = None,
) -> tuple[Object, list[str]]:
    """The same for an object that was never a body, as patches make them.

    Members that come from `known`, which was checked before, are taken as they are.
    """
    if type_name is None:
        return _changed(value, schema, known or {})
    obj = _converted_change(value, type_name, known) if known else None
    obj = obj or converted(value, type_name) or converted(_without_gaps(value), type_name)
    return (obj, []) if obj is not None else _known(value, type_name, value)


def _converted_change(value: Object, type_name: str, known: Object) -> Object | None:
    """An object of which only what differs from a known one is looked at, if that is all right."""
    struct = struct_for(type_name)
    same = _same(value, known)
    if struct is None or not same:
        return None
    rest = {key: member for key, member in value.items() if key not in same}
    made = converted(rest, type_name) or converted(_without_gaps(rest), type_name)
    if made is None:
        return None
    made |= same
    # Members come in the order in which the kind has them, whoever wrote them last.
    return {key: made[key] for key in struct.__struct_encode_fields__ if key in made}


def _same(value: Object, known: Object) -> Object:
    """The members that are the very ones of a known object, but for the metadata."""
    # Equal is not enough: True equals 1.
    return {
        key: member
        for key, member in value.items()
        if member is known.get(key) and key in known and key != "metadata"
    }


def _without_gaps(value: Object) -> Object:
    """The object without nulls in its conditions, with which patches clear reasons."""
    status = value.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(listed, list):
        return value
    kept = [_without_nulls(each) if isinstance(each, dict) else each for each in listed]
    return {**value, "status": {**status, "conditions": kept}}


def _parsed(body: bytes) -> Object:
    try:
        value = parse(body)
    except SyntaxFault as error:
        raise DecodeError(str(error)) from None
    if not isinstance(value, dict):
        sort = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        raise DecodeError(f"json: cannot unmarshal {sort} into Go value of type an object")
    return value


def converted(value: Object, type_name: str) -> Object | None:
    """The object if there is nothing wrong with it: the usual case, and the fast one."""
    struct = struct_for(type_name)
    if struct is None:
        return None
    try:
        obj: Object = msgspec.to_builtins(msgspec.convert(value, struct))
    except (msgspec.ValidationError, RecursionError):
        return None
    return obj


def _known(value: Object, type_name: str, written: Any) -> tuple[Object, list[str]]:
    fault = first_mismatch(value, type_name)
    if fault is not None:
        raise DecodeError(fault)
    problems: list[str] = []
    clean = _Pruner(problems, drop_null=True).map(written, shape_of(type_name), "")
    struct = struct_for(type_name)
    if struct is not None:
        try:
            clean = msgspec.to_builtins(msgspec.convert(clean, struct))
        except msgspec.ValidationError as error:
            raise DecodeError(f"json: {error}") from None
    return clean, problems[:_MAX_PROBLEMS]


def _custom(
    value: Object, schema: Mapping[str, Any] | None, written: Any
) -> tuple[Object, list[str]]:
    metadata = value.get("metadata")
    if metadata is not None:
        fault = first_mismatch({"metadata": metadata}, _ANY_OBJECT)
        if fault is not None:
            raise DecodeError(fault.replace("ObjectMeta.metadata.", "ObjectMeta.", 1))
    problems = [f'duplicate field "{path}"' for path in duplicates(written)]
    clean = _Pruner(problems, drop_null=False).map(value, custom_shape(schema), "")
    meta = clean.get("metadata")
    struct = struct_for(types.OBJECT_META)
    if isinstance(meta, dict) and struct is not None:
        kept = _without_nulls(meta)
        clean["metadata"] = msgspec.to_builtins(msgspec.convert(kept, struct))
    return clean, problems[:_MAX_PROBLEMS]


def _fitting(value: Object, schema: Mapping[str, Any] | None) -> Object | None:
    """A custom object if there is nothing wrong with it: the usual case, and the fast one."""
    fits = custom_shape(schema).fits
    clean: Object = {}
    for key, member in value.items():
        if key == "metadata":
            made = converted(member, types.OBJECT_META)
        else:
            made = member if key in fits and fits[key].takes(member) else None
        if made is None:
            return None
        clean[key] = made
    return clean


def _changed(
    value: Object, schema: Mapping[str, Any] | None, known: Object
) -> tuple[Object, list[str]]:
    """A custom object of which only what differs from a known one is looked at."""
    same = _same(value, known)
    rest = {key: member for key, member in value.items() if key not in same}
    fitting = _fitting(rest, schema)
    clean, problems = _custom(rest, schema, rest) if fitting is None else (fitting, [])
    clean |= same
    return {key: clean[key] for key in value if key in clean}, problems


# Any kind whose metadata is typed serves to check the metadata of the others.
_ANY_OBJECT: Final = "io.k8s.api.core.v1.ConfigMap"
_MAPS: Final = (Pairs, dict)


def _without_nulls(metadata: Object) -> Object:
    return {key: value for key, value in metadata.items() if value is not None}


class _Pruner:
    """Leaves out what the shape does not know, and notes it."""

    def __init__(self, problems: list[str], *, drop_null: bool) -> None:
        self._problems = problems
        self._drop_null = drop_null

    def map(self, written: Any, shape: Shape, path: str) -> Object:
        """A map without unknown fields; of a member that came twice the last one counts."""
        clean: Object = {}
        seen: dict[str, bool] = {}
        for key, child in written if isinstance(written, Pairs) else written.items():
            inner = f"{path}.{key}" if path else key
            if seen.get(key) is False:
                self._problems.append(f'duplicate field "{inner}"')
            seen[key] = key in seen
            below = shape.field(key)
            if below is None:
                if len(self._problems) < _MAX_PROBLEMS and not seen[key]:
                    self._problems.append(f'unknown field "{inner}"')
            elif child is not None or not self._drop_null:
                clean[key] = self.value(child, below, inner)
            elif below is shape.values and below.scalar == STRING:
                clean[key] = ""
        return clean

    def value(self, written: Any, shape: Shape, path: str) -> Any:
        """Any value without unknown fields."""
        if shape is WHOLE or shape is DEDUCED:
            return _plain(written)
        if isinstance(written, _MAPS) and shape.is_map:
            return self.map(written, shape, path)
        if isinstance(written, list) and not isinstance(written, Pairs) and shape.is_list:
            return [
                self.value(item, shape.items, f"{path}[{index}]")
                for index, item in enumerate(written)
            ]
        return _plain(written)


def _plain(value: Any) -> Any:
    """The value with ordinary objects again."""
    if isinstance(value, Pairs):
        return {key: _plain(child) for key, child in value}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return value
