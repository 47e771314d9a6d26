"""Merging, pruning and checking values by their shape, as server-side apply does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everynode.cluster.field_set import EMPTY, Tree, has_self, item_key, written
from everynode.cluster.gotext import literal, show, type_of
from everynode.cluster.shape import ANY, ATOMIC, BOOLEAN, NUMBER, STRING, Shape


def merge(live: Any, applied: Any, shape: Shape | None) -> Any:
    """The live value with all that is applied; nothing is removed, nothing is changed in place."""
    if shape is None:
        return applied
    if isinstance(live, dict) and isinstance(applied, dict):
        if shape.is_map and not shape.atomic and (live or applied):
            return _merge_maps(live, applied, shape)
    elif isinstance(live, list) and isinstance(applied, list):
        if shape.is_list and shape.listing != ATOMIC and (live or applied):
            return _merge_lists(live, applied, shape)
    elif applied is None and isinstance(live, dict | list) and live and _granular(live, shape):
        return live
    return applied


def _granular(value: Any, shape: Shape) -> bool:
    if isinstance(value, dict):
        return shape.is_map and not shape.atomic
    return shape.is_list and shape.listing != ATOMIC


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], shape: Shape) -> dict[str, Any]:
    out = dict(live)
    for key, value in applied.items():
        out[key] = merge(live[key], value, shape.field(key)) if key in live else value
    return out


def _merge_lists(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """The items of both lists: in the live order, but shared and new ones in the applied order."""
    theirs = [item_key(item, shape) for item in applied]
    mine = [_key_or_none(item, shape) for item in live]
    # Items that share a key are not merged one by one: the applied one takes their place.
    known = {key: item for key, item in zip(mine, live, strict=True) if mine.count(key) == 1}
    merged = {
        key: merge(known[key], item, shape.items) if key in known else item
        for key, item in zip(theirs, applied, strict=True)
    }
    return [live[index] if key is None else merged[key] for key, index in _interleave(mine, theirs)]


def _interleave(mine: list[str | None], theirs: list[str]) -> Iterator[tuple[str | None, int]]:
    """Which item comes next: a live one by its index, or an applied one by its key."""
    sent = frozenset(theirs)
    shared = [key for key in reversed(theirs) if key in mine]  # the next one is the last
    wanted = shared.pop() if shared else None
    taken: set[str] = set()
    left = right = 0
    while left < len(mine) or right < len(theirs):
        key = mine[left] if left < len(mine) else None
        both = left < len(mine) and right < len(theirs)
        if both and key == theirs[right]:
            left += 1
            wanted = key  # so that the next shared one is wanted from here on
        elif both and key in sent and wanted not in (None, key):
            left += 1  # shared, but others come first
            continue
        elif left < len(mine) and key not in sent:
            yield None, left
            left += 1
            continue
        elif key in taken:
            left += 1
        if right < len(theirs):
            taken.add(theirs[right])
            yield theirs[right], 0
            if wanted == theirs[right]:
                wanted = shared.pop() if shared else None
            right += 1


def _key_or_none(item: Any, shape: Shape) -> str | None:
    try:
        return item_key(item, shape)
    except ValueError:
        return None


def remove(value: Any, tree: Tree, shape: Shape | None) -> Any:
    """The value without the fields and items of a set; None if nothing is left of it."""
    if shape is None:
        return value
    if isinstance(value, dict) and shape.is_map:
        return _remove_from_map(value, tree, shape) if value and not shape.atomic else None
    if isinstance(value, list) and shape.is_list:
        return _remove_from_list(value, tree, shape) if value and not _whole(shape) else None
    return value


def _whole(shape: Shape) -> bool:
    return shape.listing == ATOMIC


def _remove_from_map(value: dict[str, Any], tree: Tree, shape: Shape) -> dict[str, Any] | None:
    out: dict[str, Any] = {}
    for key, child in value.items():
        node = tree.get("f:" + key)
        if node is None:
            out[key] = child
        elif not has_self(node):
            out[key] = remove(child, node, shape.field(key))
    return out or None


def _remove_from_list(value: list[Any], tree: Tree, shape: Shape) -> list[Any] | None:
    out: list[Any] = []
    for item in value:
        node = tree.get(_key_or_none(item, shape) or "")
        if node is None:
            out.append(item)
        elif not has_self(node):
            out.append(remove(item, node, shape.items))
    return out or None


def faults(value: Any, shape: Shape) -> list[str]:
    """Why a value does not fit its shape, each fault with its path."""
    found: list[str] = []
    _check(value, shape, "", found)
    return found


def _check(value: Any, shape: Shape, path: str, found: list[str]) -> None:
    if value is None:
        return
    if isinstance(value, dict) and shape.is_map:
        _check_map(value, shape, path, found)
    elif isinstance(value, list) and shape.is_list:
        _check_list(value, shape, path, found)
    elif isinstance(value, dict | list) or not shape.scalar or not _fits(value, shape.scalar):
        found.append(_said(path, _expected(value, shape)))


def _said(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _fits(value: Any, scalar: str) -> bool:
    if scalar == NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == STRING:
        return isinstance(value, str)
    return scalar == ANY or isinstance(value, bool)


def _expected(value: Any, shape: Shape) -> str:
    if shape.is_map:
        return f"expected map, got &{{{show(value)}}}"
    if shape.scalar == NUMBER:
        return f"expected numeric (int or float), got {type_of(value)}"
    if shape.scalar == STRING:
        return f"expected string, got &value.valueUnstructured{{Value:{literal(value)}}}"
    if shape.scalar == BOOLEAN:
        return f"expected boolean, got &{{{show(value)}}}"
    if shape.scalar:
        return f"expected any scalar, got &{{{show(value)}}}"
    return f"expected list, got &{{{show(value)}}}"


def _check_map(value: dict[str, Any], shape: Shape, path: str, found: list[str]) -> None:
    for key, child in value.items():
        inner = shape.field(key)
        if inner is None:
            found.append(f"{path}.{key}: field not declared in schema")
        else:
            _check(child, inner, f"{path}.{key}", found)


def _check_list(value: list[Any], shape: Shape, path: str, found: list[str]) -> None:
    seen: dict[str, Tree] = {}
    for index, item in enumerate(value):
        step = f"[{index}]"
        if shape.listing != ATOMIC:
            try:
                key = item_key(item, shape)
            except ValueError as error:
                found.append(_said(path, f"element {index}: {error}"))
                return
            step = written(key)
            if key in seen:
                found.append(_said(path, f"duplicate entries for key {step}"))
            seen[key] = EMPTY
        _check(item, shape.items, path + step, found)
