"""Which fields of an object were touched and which removed, as trees of fields."""

from __future__ import annotations

import operator
from typing import Any, Final

from everynode.cluster.field_set import EMPTY, SELF, Tree, item_key, join, ordered
from everynode.cluster.shape import ATOMIC, Shape

_ABSENT: Final = object()
_KEY: Final = operator.itemgetter(0)


class Comparison:
    """What changed from one object to another; both trees are empty if nothing did."""

    __slots__ = ("removed", "touched")

    def __init__(self, touched: Tree, removed: Tree) -> None:
        self.touched = touched  # added or modified
        self.removed = removed


def compare(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> Comparison:
    """The difference between two objects of one shape."""
    touched, removed = _maps(old, new, shape)
    return Comparison(touched, removed)


def field_tree(value: Any, shape: Shape) -> Tree:
    """The node of a value that was not there before: itself and everything below."""
    if isinstance(value, dict):
        if value and shape.is_map and not shape.atomic:
            return _whole_map(value, shape)
    elif isinstance(value, list) and value and shape.is_list and shape.listing != ATOMIC:
        return _whole_list(value, shape)
    return EMPTY


def _whole_map(value: dict[str, Any], shape: Shape) -> Tree:
    node: Tree = {SELF: EMPTY}
    fields, values = shape.fields, shape.values
    for key, child in sorted(value.items(), key=_KEY):
        inner = fields.get(key, values)
        # What the type does not know is dropped when the object is stored.
        if inner is not None:
            if child.__class__ is dict or child.__class__ is list:
                node["f:" + key] = field_tree(child, inner)
            else:
                node["f:" + key] = EMPTY
    return node


def _whole_list(value: list[Any], shape: Shape) -> Tree:
    node: Tree = {SELF: EMPTY}
    for key, found in _index(value, shape).items():
        node[key] = EMPTY if len(found) > 1 else field_tree(found[0], shape.items)
    return ordered(node)


def _index(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """Items by name; a name that several share leads to all of them."""
    index: dict[str, list[Any]] = {}
    for item in items:
        try:
            key = item_key(item, shape)
        except ValueError:
            continue
        index.setdefault(key, []).append(item)
    return index


def _maps(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> tuple[Tree, Tree]:
    """The children of two maps that were touched and removed."""
    touched: Tree = {}
    removed: Tree = {}
    zeros = shape.zeros
    names = sorted({**old, **new}) if old.keys() != new.keys() else sorted(new)
    for name in names:
        before = old.get(name, _ABSENT)
        after = new.get(name, _ABSENT)
        if before is after or before == after:
            continue
        inner = shape.field(name)
        if inner is None:
            continue
        if before is _ABSENT:
            before = zeros.get(name, _ABSENT)
        elif after is _ABSENT:
            after = zeros.get(name, _ABSENT)
        if before is after or before == after:
            continue
        if before is _ABSENT and after.__class__ is not dict and after.__class__ is not list:
            touched["f:" + name] = EMPTY
        else:
            _note(touched, removed, "f:" + name, _values(before, after, inner))
    return touched, removed


def _note(touched: Tree, removed: Tree, key: str, change: tuple[Tree | None, Tree | None]) -> None:
    if change[0] is not None:
        touched[key] = change[0]
    if change[1] is not None:
        removed[key] = change[1]


def _values(before: Any, after: Any, shape: Shape) -> tuple[Tree | None, Tree | None]:
    """The nodes of two different values, or None where there is nothing to say."""
    if before is _ABSENT:
        return field_tree(after, shape), None
    if after is _ABSENT:
        return None, field_tree(before, shape)
    old, new = _container(before, shape), _container(after, shape)
    if isinstance(old, dict) and isinstance(new, dict):
        touched, removed = _maps(old, new, shape)
        return touched or None, removed or None
    if isinstance(old, list) and isinstance(new, list):
        touched, removed = _lists(old, new, shape)
        return touched or None, removed or None
    # One side is a leaf and the other is not, or both are leaves: the value itself changed.
    grown = field_tree(after, shape) if new is not None else EMPTY
    shrunk = _without_self(field_tree(before, shape)) if old is not None else EMPTY
    if before is None or after is None:
        return _from_null(before, grown, shrunk)
    return grown, shrunk or None


def _from_null(before: Any, grown: Tree, shrunk: Tree) -> tuple[Tree | None, Tree | None]:
    # A null is a map or a list as soon as the other side is one: only what is in it changed.
    if before is None:
        return (_without_self(grown) or None, None) if grown else (EMPTY, None)
    return (None, shrunk) if shrunk else (EMPTY, None)


def _container(value: Any, shape: Shape) -> dict[str, Any] | list[Any] | None:
    """The value if its parts are compared one by one."""
    if isinstance(value, dict):
        return value if shape.is_map and not shape.atomic else None
    if isinstance(value, list):
        return value if shape.is_list and shape.listing != ATOMIC else None
    return None


def _without_self(node: Tree) -> Tree:
    return {key: inner for key, inner in node.items() if key != SELF}


def _lists(old: list[Any], new: list[Any], shape: Shape) -> tuple[Tree, Tree]:
    touched: Tree = {}
    removed: Tree = {}
    before, after = _index(old, shape), _index(new, shape)
    for key in {**before, **after}:
        _note(touched, removed, key, _items(before.get(key, []), after.get(key, []), shape.items))
    return ordered(touched), ordered(removed)


def _items(old: list[Any], new: list[Any], shape: Shape) -> tuple[Tree | None, Tree | None]:
    """Items of one name; several of them count as one value."""
    if old == new:
        return None, None
    if len(old) > 1 and len(new) > 1:
        return EMPTY, None
    if len(old) > 1:
        return field_tree(new[0], shape) if new else None, EMPTY
    if len(new) > 1:
        gone = field_tree(old[0], shape) if old else None
        return EMPTY, gone
    return _values(old[0] if old else _ABSENT, new[0] if new else _ABSENT, shape)


def field_set(value: dict[str, Any], shape: Shape) -> Tree:
    """Every leaf and every item that an applied object mentions."""
    return _mentioned_map(value, shape)


def _mentioned(value: Any, shape: Shape) -> tuple[Tree, bool]:
    """What is mentioned below a value, and whether the value is a leaf itself."""
    if isinstance(value, dict) and shape.is_map:
        return (EMPTY, True) if shape.atomic else (_mentioned_map(value, shape), False)
    if isinstance(value, list) and shape.is_list:
        if shape.listing == ATOMIC:
            return EMPTY, True
        return _mentioned_list(value, shape), False
    return EMPTY, value is not None or bool(shape.scalar)


def _mentioned_map(value: dict[str, Any], shape: Shape) -> Tree:
    node: Tree = {}
    for name in sorted(value):
        inner = shape.field(name)
        if inner is None:
            continue
        child = value[name]
        below, leaf = _mentioned(child, inner)
        member = leaf or child is None or child == {} or name not in shape.fields
        found = join(below, member=member)
        if found is not None:
            node["f:" + name] = found
    return node


def _mentioned_list(value: list[Any], shape: Shape) -> Tree:
    node: Tree = {}
    for key, found in _index(value, shape).items():
        below = EMPTY if len(found) > 1 else _mentioned(found[0], shape.items)[0]
        node[key] = join(below, member=True) or EMPTY
    return ordered(node)
