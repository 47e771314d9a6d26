"""Typed merge for server-side apply: merge, remove and validate values along their type tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from everynode.apiserver.apply.field_set import (
    EMPTY,
    FieldSet,
    format_path_element,
    is_member,
    item_key,
)
from everynode.apiserver.schema.go_format import format_go_syntax, format_value, go_type_name
from everynode.apiserver.schema.type_tree import ANY, ATOMIC, BOOLEAN, NUMBER, STRING, TypeNode


def merge(live: Any, applied: Any, type_node: TypeNode | None) -> Any:
    """Merge an applied value into the live one; nothing is removed or changed in place."""
    if type_node is None or not isinstance(live, dict | list) or not _is_granular(live, type_node):
        return applied
    if isinstance(live, dict) and isinstance(applied, dict):
        return _merge_maps(live, applied, type_node)
    if isinstance(live, list) and isinstance(applied, list):
        return _merge_lists(live, applied, type_node)
    return live if live and applied is None else applied


def _is_granular(value: Any, type_node: TypeNode) -> bool:
    if isinstance(value, dict):
        return type_node.is_map and not type_node.atomic
    return type_node.is_list and type_node.list_type != ATOMIC


def _merge_maps(
    live: dict[str, Any], applied: dict[str, Any], type_node: TypeNode
) -> dict[str, Any]:
    out = dict(live)
    for key, value in applied.items():
        out[key] = merge(live[key], value, type_node.field(key)) if key in live else value
    return out


def _merge_lists(live: list[Any], applied: list[Any], type_node: TypeNode) -> list[Any]:
    """Merge two lists item by item; `_merge_order` says in which order the items come."""
    applied_keys = [item_key(item, type_node) for item in applied]
    live_keys = [_key_or_none(item, type_node) for item in live]
    # Live items that share a key are not merged one by one: the applied item replaces them all.
    times = Counter(live_keys)
    unique = {key: item for key, item in zip(live_keys, live, strict=True) if times[key] == 1}
    merged = {
        key: merge(unique[key], item, type_node.items) if key in unique else item
        for key, item in zip(applied_keys, applied, strict=True)
    }
    order = _merge_order(live_keys, applied_keys)
    return [live[index] if key is None else merged[key] for key, index in order]


def _merge_order(live: list[str | None], applied: list[str]) -> Iterator[tuple[str | None, int]]:
    """Yield the items of a merged list in order, as structured-merge-diff orders them.

    An applied item is yielded as its key and 0, a live item that was not applied as None and its
    index. Applied items come in the applied order. Live items that were not applied come in the
    live order, as early as possible: before each applied item the live list is walked up to the
    live counterpart of that item or, for a new item, of the next shared one. (Shared means: in both
    lists.) Shared items that are walked over are not yielded; they come when the applied order
    gets to them.

    Example, live `a b c d`, applied `c x b`:

        before c: yield a (only live), walk over b (shared, but c comes first), stop at c; yield c
        before x: yield d (only live), the live list ends;                                 yield x
        before b: nothing is left of the live list;                                        yield b

    The result is `a c d x b`.
    """
    applied_keys, live_keys = frozenset(applied), frozenset(live)
    shared = (key for key in applied if key in live_keys)
    next_shared = next(shared, None)
    position = 0  # of the next live item
    for key in applied:
        while position < len(live):
            other = live[position]
            if other not in applied_keys:
                yield None, position
            elif other == next_shared and other != key:
                break  # a new item comes directly before the shared one that it was applied before
            elif other == key or next_shared is None:
                # Observed: once all shared items were yielded, each one left ends the walk, too.
                position += 1
                break
            position += 1
        yield key, 0
        if key == next_shared:
            next_shared = next(shared, None)
    for index in range(position, len(live)):
        if live[index] not in applied_keys:
            yield None, index


def _key_or_none(item: Any, type_node: TypeNode) -> str | None:
    try:
        return item_key(item, type_node)
    except ValueError:
        return None


def remove_fields(value: Any, tree: FieldSet, type_node: TypeNode | None) -> Any:
    """Return the value without the fields and items of a field set; None if nothing is left."""
    if type_node is None:
        return value
    if isinstance(value, dict) and type_node.is_map:
        return (
            _remove_from_map(value, tree, type_node)
            if value and _is_granular(value, type_node)
            else None
        )
    if isinstance(value, list) and type_node.is_list:
        return (
            _remove_from_list(value, tree, type_node)
            if value and _is_granular(value, type_node)
            else None
        )
    return value


def _remove_from_map(
    value: dict[str, Any], tree: FieldSet, type_node: TypeNode
) -> dict[str, Any] | None:
    out: dict[str, Any] = {}
    for key, child in value.items():
        node = tree.get("f:" + key)
        if node is None:
            out[key] = child
        elif not is_member(node):
            out[key] = remove_fields(child, node, type_node.field(key))
    return out or None


def _remove_from_list(value: list[Any], tree: FieldSet, type_node: TypeNode) -> list[Any] | None:
    out: list[Any] = []
    for item in value:
        node = tree.get(_key_or_none(item, type_node) or "")
        if node is None:
            out.append(item)
        elif not is_member(node):
            out.append(remove_fields(item, node, type_node.items))
    return out or None


def validation_errors(value: Any, type_node: TypeNode) -> list[str]:
    """Return why a value is not of its type, one message with its path per error."""
    found: list[str] = []
    _validate(value, type_node, "", found)
    return found


def _validate(value: Any, type_node: TypeNode, path: str, found: list[str]) -> None:
    if value is None:
        return
    if isinstance(value, dict) and type_node.is_map:
        _validate_map(value, type_node, path, found)
    elif isinstance(value, list) and type_node.is_list:
        _validate_list(value, type_node, path, found)
    elif (
        isinstance(value, dict | list)
        or not type_node.scalar
        or not _is_scalar(value, type_node.scalar)
    ):
        found.append(_with_path(path, _expectation(value, type_node)))


def _with_path(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _is_scalar(value: Any, scalar: str) -> bool:
    if scalar == NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == STRING:
        return isinstance(value, str)
    return scalar == ANY or isinstance(value, bool)


def _expectation(value: Any, type_node: TypeNode) -> str:
    if type_node.is_map:
        return f"expected map, got &{{{format_value(value)}}}"
    if type_node.scalar == NUMBER:
        return f"expected numeric (int or float), got {go_type_name(value)}"
    if type_node.scalar == STRING:
        return f"expected string, got &value.valueUnstructured{{Value:{format_go_syntax(value)}}}"
    if type_node.scalar == BOOLEAN:
        return f"expected boolean, got &{{{format_value(value)}}}"
    if type_node.scalar:
        return f"expected any scalar, got &{{{format_value(value)}}}"
    return f"expected list, got &{{{format_value(value)}}}"


def _validate_map(value: dict[str, Any], type_node: TypeNode, path: str, found: list[str]) -> None:
    for key, child in value.items():
        inner = type_node.field(key)
        if inner is None:
            found.append(f"{path}.{key}: field not declared in schema")
        else:
            _validate(child, inner, f"{path}.{key}", found)


def _validate_list(value: list[Any], type_node: TypeNode, path: str, found: list[str]) -> None:
    seen: dict[str, FieldSet] = {}
    for index, item in enumerate(value):
        step = f"[{index}]"
        if type_node.list_type != ATOMIC:
            try:
                key = item_key(item, type_node)
            except ValueError as error:
                found.append(_with_path(path, f"element {index}: {error}"))
                return
            step = format_path_element(key)
            if key in seen:
                found.append(_with_path(path, f"duplicate entries for key {step}"))
            seen[key] = EMPTY
        _validate(item, type_node.items, path + step, found)
