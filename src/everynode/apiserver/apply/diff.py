"""Differences of two objects as field sets: which fields were added or modified, which removed."""

from __future__ import annotations

import operator
from typing import Any, Final

from everynode.apiserver.apply.field_set import (
    EMPTY,
    SELF,
    FieldSet,
    item_key,
    make_node,
    sort_elements,
)
from everynode.apiserver.schema.type_tree import ATOMIC, TypeNode

_MISSING: Final = object()
_KEY: Final = operator.itemgetter(0)


class Comparison:
    """What changed from one object to another; both field sets are empty if nothing did."""

    __slots__ = ("changed", "removed")

    def __init__(self, changed: FieldSet, removed: FieldSet) -> None:
        self.changed = changed  # added or modified
        self.removed = removed


def compare(old: dict[str, Any], new: dict[str, Any], type_node: TypeNode) -> Comparison:
    """Compare two objects of one type."""
    changed, removed = _compare_maps(old, new, type_node)
    return Comparison(changed, removed)


def full_subtree(value: Any, type_node: TypeNode) -> FieldSet:
    """Return the node of a value that one side lacks: the value itself and everything below."""
    if isinstance(value, dict):
        if value and type_node.is_map and not type_node.atomic:
            return _map_subtree(value, type_node)
    elif isinstance(value, list) and value and type_node.is_list and type_node.list_type != ATOMIC:
        return _list_subtree(value, type_node)
    return EMPTY


def _map_subtree(value: dict[str, Any], type_node: TypeNode) -> FieldSet:
    node: FieldSet = {SELF: EMPTY}
    fields, values = type_node.fields, type_node.values
    for key, child in sorted(value.items(), key=_KEY):
        inner = fields.get(key, values)
        # Fields that the type does not know are dropped when the object is stored.
        if inner is not None:
            if child.__class__ is dict or child.__class__ is list:
                node["f:" + key] = full_subtree(child, inner)
            else:
                node["f:" + key] = EMPTY
    return node


def _list_subtree(value: list[Any], type_node: TypeNode) -> FieldSet:
    node: FieldSet = {SELF: EMPTY}
    for key, found in _items_by_key(value, type_node).items():
        node[key] = EMPTY if len(found) > 1 else full_subtree(found[0], type_node.items)
    return sort_elements(node)


def _items_by_key(items: list[Any], type_node: TypeNode) -> dict[str, list[Any]]:
    """Group list items by their key; several items may share one."""
    index: dict[str, list[Any]] = {}
    for item in items:
        try:
            key = item_key(item, type_node)
        except ValueError:
            continue
        index.setdefault(key, []).append(item)
    return index


def _compare_maps(
    old: dict[str, Any], new: dict[str, Any], type_node: TypeNode
) -> tuple[FieldSet, FieldSet]:
    """Return the changed and the removed children of two maps."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    zero_values = type_node.zero_values
    names = sorted({**old, **new}) if old.keys() != new.keys() else sorted(new)
    for name in names:
        before = old.get(name, _MISSING)
        after = new.get(name, _MISSING)
        if before is after or before == after:
            continue
        inner = type_node.field(name)
        if inner is None:
            continue
        if before is _MISSING:
            before = zero_values.get(name, _MISSING)
        elif after is _MISSING:
            after = zero_values.get(name, _MISSING)
        if before is after or before == after:
            continue
        if before is _MISSING and after.__class__ is not dict and after.__class__ is not list:
            changed["f:" + name] = EMPTY
        else:
            _record(changed, removed, "f:" + name, _compare_values(before, after, inner))
    return changed, removed


def _record(
    changed: FieldSet, removed: FieldSet, key: str, change: tuple[FieldSet | None, FieldSet | None]
) -> None:
    if change[0] is not None:
        changed[key] = change[0]
    if change[1] is not None:
        removed[key] = change[1]


def _compare_values(
    before: Any, after: Any, type_node: TypeNode
) -> tuple[FieldSet | None, FieldSet | None]:
    """Return the changed and the removed node of two different values; None for none."""
    if before is _MISSING:
        return full_subtree(after, type_node), None
    if after is _MISSING:
        return None, full_subtree(before, type_node)
    old, new = _as_granular(before, type_node), _as_granular(after, type_node)
    if isinstance(old, dict) and isinstance(new, dict):
        changed, removed = _compare_maps(old, new, type_node)
        return changed or None, removed or None
    if isinstance(old, list) and isinstance(new, list):
        changed, removed = _compare_lists(old, new, type_node)
        return changed or None, removed or None
    # Both are leaves, or only one of them is: the value itself changed.
    added = full_subtree(after, type_node) if new is not None else EMPTY
    removed_below = _drop_self(full_subtree(before, type_node)) if old is not None else EMPTY
    if before is None or after is None:
        return _compare_with_null(before, added, removed_below)
    return added, removed_below or None


def _compare_with_null(
    before: Any, added: FieldSet, removed_below: FieldSet
) -> tuple[FieldSet | None, FieldSet | None]:
    # Against a map or a list, null counts as an empty one: only the contents changed.
    if before is None:
        return (_drop_self(added) or None, None) if added else (EMPTY, None)
    return (None, removed_below) if removed_below else (EMPTY, None)


def _as_granular(value: Any, type_node: TypeNode) -> dict[str, Any] | list[Any] | None:
    """Return a map or list whose members are compared one by one, None for any other value."""
    if isinstance(value, dict):
        return value if type_node.is_map and not type_node.atomic else None
    if isinstance(value, list):
        return value if type_node.is_list and type_node.list_type != ATOMIC else None
    return None


def _drop_self(node: FieldSet) -> FieldSet:
    return {key: inner for key, inner in node.items() if key != SELF}


def _compare_lists(
    old: list[Any], new: list[Any], type_node: TypeNode
) -> tuple[FieldSet, FieldSet]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    before, after = _items_by_key(old, type_node), _items_by_key(new, type_node)
    for key in {**before, **after}:
        _record(
            changed,
            removed,
            key,
            _compare_items(before.get(key, []), after.get(key, []), type_node.items),
        )
    return sort_elements(changed), sort_elements(removed)


def _compare_items(
    old: list[Any], new: list[Any], type_node: TypeNode
) -> tuple[FieldSet | None, FieldSet | None]:
    """Compare the items of one key; several of them count as one value."""
    if old == new:
        return None, None
    if len(old) > 1 and len(new) > 1:
        return EMPTY, None
    if len(old) > 1:
        return full_subtree(new[0], type_node) if new else None, EMPTY
    if len(new) > 1:
        gone = full_subtree(old[0], type_node) if old else None
        return EMPTY, gone
    return _compare_values(old[0] if old else _MISSING, new[0] if new else _MISSING, type_node)


def to_field_set(value: dict[str, Any], type_node: TypeNode) -> FieldSet:
    """Return the field set of an applied object: every leaf and every list item in it."""
    return _map_fields(value, type_node)


def _value_fields(value: Any, type_node: TypeNode) -> tuple[FieldSet, bool]:
    """Return the fields below a value, and whether the value itself is a leaf."""
    if isinstance(value, dict) and type_node.is_map:
        return (EMPTY, True) if type_node.atomic else (_map_fields(value, type_node), False)
    if isinstance(value, list) and type_node.is_list:
        if type_node.list_type == ATOMIC:
            return EMPTY, True
        return _list_fields(value, type_node), False
    return EMPTY, value is not None or bool(type_node.scalar)


def _map_fields(value: dict[str, Any], type_node: TypeNode) -> FieldSet:
    node: FieldSet = {}
    for name in sorted(value):
        inner = type_node.field(name)
        if inner is None:
            continue
        child = value[name]
        below, leaf = _value_fields(child, inner)
        member = leaf or child is None or child == {} or name not in type_node.fields
        found = make_node(below, member=member)
        if found is not None:
            node["f:" + name] = found
    return node


def _list_fields(value: list[Any], type_node: TypeNode) -> FieldSet:
    node: FieldSet = {}
    for key, found in _items_by_key(value, type_node).items():
        below = EMPTY if len(found) > 1 else _value_fields(found[0], type_node.items)[0]
        node[key] = make_node(below, member=True) or EMPTY
    return sort_elements(node)
