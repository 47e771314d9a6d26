"""Strategic merge patch: merges lists by their merge key and carries out `$` directives.

The merge keys and patch strategies come from the table of types. Where the results differ from the
documentation of Kubernetes, they follow what kube-apiserver does (compared by tests/agreement).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from msgspec.json import encode as _encode

from everynode.api import types
from everynode.api.types import FieldInfo
from everynode.apiserver.schema.go_format import format_value, go_type_name

Object = dict[str, Any]

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
ORDER_PREFIX: Final = "$setElementOrder"


class StrategicError(ValueError):
    """A strategic merge patch that fails."""


class FormatError(StrategicError):
    """A directive of the wrong form."""


class FieldPatchMeta:
    """How one field is merged (patchStrategy and patchMergeKey)."""

    __slots__ = ("_item_type", "_object_type", "item_type_name", "merge_key", "merges_list")

    def __init__(self, info: FieldInfo) -> None:
        self.merges_list = "merge" in info.patch_strategy.split(",")  # lists: not replaced
        self.merge_key = info.patch_merge_key  # the field that identifies an item of the list
        self.item_type_name = info.items.ref if info.items is not None else ""
        self._item_type = self.item_type_name if info.items is not None else info.ref
        self._object_type = info.ref or (info.values.ref if info.values is not None else "")

    @property
    def item_type(self) -> TypePatchMeta:
        """The patch metadata of the objects in the list."""
        return patch_meta(self._item_type)

    @property
    def object_type(self) -> TypePatchMeta:
        """The patch metadata of the object, or of the objects in the map."""
        return patch_meta(self._object_type)


class TypePatchMeta:
    """How the fields of one type are merged; empty for untyped values."""

    __slots__ = ("_fields",)

    def __init__(self, type_name: str) -> None:
        info = types.load().get(type_name)
        known = info.fields if info is not None else {}
        self._fields = {name: FieldPatchMeta(field) for name, field in known.items()}

    def field(self, name: str) -> FieldPatchMeta:
        """How a field is merged."""
        return self._fields.get(name, _NO_PATCH_META)


_NO_PATCH_META: Final = FieldPatchMeta(FieldInfo())
patch_meta: Final = cache(TypePatchMeta)  # one per type
_NEEDS_MERGE: Final = frozenset({dict, list, type(None)})  # not copied as is


def merge(original: Object, patch: Object, type_name: str) -> Object:
    """Return the patched object; neither argument is changed. Raises StrategicError."""
    return _merge_map(original, patch, patch_meta(type_name))


def _merge_map(original: Object, patch: Object, meta: TypePatchMeta) -> Object:
    if "$" in "".join(patch):
        return _merge_map_with_directives(original, patch, meta)
    out = {**original, **patch}
    if _NEEDS_MERGE.isdisjoint(map(type, patch.values())):
        return out
    for key, value in patch.items():
        if value is None:
            del out[key]
        elif type(value) is dict or type(value) is list:
            _merge_field(out, key, value, original.get(key), meta)
    return out


def _merge_map_with_directives(original: Object, patch: Object, meta: TypePatchMeta) -> Object:
    """Merge a map with a patch that may hold directives."""
    if DIRECTIVE in patch:
        return _run_patch_directive(patch)
    out = dict(original)
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        out = _run_retain_keys(out, rest)
    _run_set_element_order(out, rest, meta)
    for key, value in rest.items():
        if key.startswith(DELETE_PREFIX):
            _run_delete_from_primitive_list(out, key, value)
        elif value is None:
            out.pop(key, None)
        else:
            _merge_field(out, key, value, out.get(key), meta)
    return out


def _merge_field(out: Object, key: str, value: Any, before: Any, meta: TypePatchMeta) -> None:
    """Merge one field with its value `before`, into the object `out`."""
    if isinstance(before, dict) and isinstance(value, dict):
        out[key] = _merge_map(before, value, meta.field(key).object_type)
    elif isinstance(before, list) and isinstance(value, list):
        # Observed: directives stay in a list that is replaced, and are dropped in a new one.
        field = meta.field(key)
        out[key] = _merge_list(before, value, field) if field.merges_list else value
    else:
        fresh = _drop_directives(value)
        if fresh is _DROPPED:
            out.pop(key, None)
        else:
            out[key] = fresh


def _run_patch_directive(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise StrategicError(
        f"unknown patch type: {format_value(directive)} in map: {format_value(patch)}"
    )


def _run_retain_keys(original: Object, patch: Object) -> Object:
    """Run $retainKeys: remove every field that it does not name."""
    keys = patch.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise FormatError("invalid patch format of retainKeys")
    kept = set(_hashables(keys))
    for key, value in patch.items():
        special = key.startswith((DELETE_PREFIX, ORDER_PREFIX))
        if value is not None and not special and key not in kept:
            raise FormatError("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _run_delete_from_primitive_list(out: Object, key: str, value: Any) -> None:
    name = _directive_field(key, DELETE_PREFIX, "invalid patch format of primitive list")
    before = out.get(name)
    if value is None:
        out.pop(name, None)
    elif isinstance(before, list) and isinstance(value, list):
        gone = set(_hashables(value))
        out[name] = [item for item in before if _hashable(item) not in gone]


def _directive_field(key: str, prefix: str, message: str) -> str:
    """Return the field that a directive names: `containers` of `$setElementOrder/containers`."""
    start, slash, name = key.partition("/")
    if start != prefix or not slash:
        raise FormatError(message)
    return name


_DROPPED: Final = object()


def _hashable(value: Any) -> Any:
    """Return a hashable stand-in, equal for equal values, so that lookups need no list search."""
    return ("JSON", _encode(value, order="sorted")) if isinstance(value, dict | list) else value


def _hashables(values: Iterable[Any]) -> list[Any]:
    return [_hashable(value) for value in values]


def _first_positions(tokens: Iterable[Any]) -> dict[Any, int]:
    """Return the first position of each value."""
    found: dict[Any, int] = {}
    for at, token in enumerate(tokens):
        found.setdefault(token, at)
    return found


def _drop_directives(value: Any) -> Any:
    """Drop directives and nulls of a value that replaces nothing, so that they act on nothing."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _DROPPED
        if _NEEDS_MERGE.isdisjoint(map(type, value.values())):
            return value
        kept = ((k, _drop_directives(v)) for k, v in value.items() if v is not None)
        return {key: child for key, child in kept if child is not _DROPPED}
    if isinstance(value, list):
        found = (_drop_directives(item) for item in value)
        return [item for item in found if item is not _DROPPED]
    return value


# --- Lists -------------------------------------------------------------------------------------


def _merge_list(original: list[Any], patch: list[Any], field: FieldPatchMeta) -> list[Any]:
    known = _try_fast_list_merge(original, patch, field) if field.merge_key else None
    return _merge_list_items(original, patch, field) if known is None else known


def _try_fast_list_merge(
    original: list[Any], patch: list[Any], field: FieldPatchMeta
) -> list[Any] | None:
    """Merge a list in the usual cases, without the general algorithm.

    These are: some of the known items in their order; all of them and perhaps new ones; only new
    ones. Returns None in any other case: another order, a directive, an invalid item.
    """
    key, meta = field.merge_key, field.item_type
    try:
        known = {item[key]: item for item in original}
        sent = {item[key]: item for item in patch}
        if len(known) < len(original) or len(sent) < len(patch):
            return None
        if any(DIRECTIVE in item for item in patch):
            return None
    except (KeyError, TypeError):
        return None
    merged = {
        name: _merge_map(known[name], item, meta) if name in known else _drop_nulls(item)
        for name, item in sent.items()
    }
    if known.keys() <= merged.keys():
        return list(merged.values())
    if known.keys().isdisjoint(merged):
        return [*merged.values(), *original]
    if [name for name in known if name in merged] == list(merged):
        return list({**known, **merged}.values())
    return None


def _drop_nulls(item: Object) -> Object:
    # A null in a new item means that the field is not set; the converter is faster without nulls.
    return {name: value for name, value in item.items() if value is not None}


def _merge_list_items(original: list[Any], patch: list[Any], field: FieldPatchMeta) -> list[Any]:
    if not original and not patch:
        return original
    if not _are_objects(original, patch):
        merged = list(dict.fromkeys([*original, *patch]))
        return _order_merged_list(merged, patch, original, "")
    key = field.merge_key
    if not key:
        name = field.item_type_name.rsplit(".", 1)[-1]
        raise StrategicError(f"cannot merge lists without merge key for {name}")
    original, patch = _run_item_directives(original, patch, key)
    merged = list(original)
    path_cache = _first_positions(_hashable(item.get(key, _DROPPED)) for item in merged)
    for item in patch:
        if key not in item:
            raise _missing_merge_key(item, key)
        at = path_cache.setdefault(_hashable(item[key]), len(merged))
        if at < len(merged):
            merged[at] = _merge_map(merged[at], item, field.item_type)
        else:
            merged.append(_drop_nulls(item))
    return _order_merged_list(merged, patch, original, key)


def _are_objects(*lists: list[Any]) -> bool:
    """Whether the items are objects; raises StrategicError if their types differ."""
    if all(type(item) is dict for items in lists for item in items):
        return any(lists)
    sorts = {go_type_name(item): None for items in lists for item in items}
    if "[]interface {}" in sorts:
        raise StrategicError("lists of lists are not supported")
    if len(sorts) > 1:
        raise StrategicError(f"list element types are not identical: {format_value(list(lists))}")
    return "map[string]interface {}" in sorts


def _run_item_directives(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Run the items that are directives; return the original and the patch without them."""
    plain: list[Any] = []
    deleted = set[Any]()
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE, _DROPPED)
        if directive is _DROPPED:
            plain.append(item)
        elif directive == "delete":
            if key not in item:
                raise _missing_merge_key(item, key)
            deleted.add(_hashable(item[key]))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise StrategicError(
                f"unknown patch type: {format_value(directive)} in map: {format_value(item)}"
            )
    if deleted:
        original = [old for old in original if _hashable(old.get(key, _DROPPED)) not in deleted]
    return (plain, []) if replace else (original, plain)


def _missing_merge_key(item: Object, key: str) -> StrategicError:
    return StrategicError(f"map: {format_value(item)} does not contain declared merge key: {key}")


def _merge_key_value(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _missing_merge_key(item if isinstance(item, dict) else {}, key)
    return item[key]


def _merge_key_values(items: list[Any], key: str) -> list[Any]:
    try:
        return [item[key] for item in items] if key else items
    except (KeyError, TypeError):
        return [_merge_key_value(item, key) for item in items]


def _order_merged_list(
    merged: list[Any], order: list[Any], server_order: list[Any], merge_key: str
) -> list[Any]:
    """Put a merged list into the order that a patch asks for.

    The items that `order` names come in that order. The others, which only the server had, keep
    the order of `merged`. The two sequences are then merged: the server's item goes first if both
    items in front were in `server_order` and the server's stood before the other one there.

    Example, server_order `a b c d`, order `d x b`:

        server only `a c`, ordered `d x b`: a stood before d -> a
        server only `c`,   ordered `d x b`: c stood before d -> c
        nothing left that only the server had                -> d x b

    The result is `a c d x b`.
    """
    lists = (order, merged, server_order)
    ordered, names, on_server = (_hashables(_merge_key_values(items, merge_key)) for items in lists)
    rank, server_position = _first_positions(ordered), _first_positions(on_server)
    if _has_order(names, ordered, on_server, rank):
        return merged
    named = list(zip(names, merged, strict=True))
    server_only = deque(each for each in named if each[0] not in rank)
    ranked = deque(
        sorted((each for each in named if each[0] in rank), key=lambda each: rank[each[0]])
    )
    result: list[tuple[Any, Any]] = []
    while server_only and ranked:
        left, right = (server_position.get(queue[0][0]) for queue in (server_only, ranked))
        server_first = left is not None and right is not None and left < right
        result.append((server_only if server_first else ranked).popleft())
    return [item for _, item in (*result, *server_only, *ranked)]


def _has_order(
    names: list[Any], ordered: list[Any], on_server: list[Any], rank: dict[Any, int]
) -> bool:
    """Whether a merged list is in order already, which most are."""
    if len(set(names)) < len(names):
        return False
    if names == ordered:
        return True
    return names == on_server and [name for name in names if name in rank] == ordered


def _run_set_element_order(out: Object, patch: Object, meta: TypePatchMeta) -> None:
    """Run every $setElementOrder of a patch, together with the list that it orders.

    Both are taken out of the patch; the merged and ordered list is put into `out`.
    """
    for directive in [key for key in patch if key.startswith(ORDER_PREFIX)]:
        order = _as_list(patch.pop(directive))
        name = _directive_field(
            directive, ORDER_PREFIX, "invalid patch format of setElementOrder list"
        )
        before, change = out.get(name), patch.get(name)
        before = None if before is None else _as_list(before)
        change = None if change is None else _as_list(change)
        if before is not None or change is not None:
            patch.pop(name, None)
            out[name] = _merge_in_order(before, change, order, meta.field(name))


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise StrategicError(f"expected a []interface {{}}, but received a {go_type_name(value)}")
    return value


def _merge_in_order(
    before: list[Any] | None, change: list[Any] | None, order: list[Any], field: FieldPatchMeta
) -> list[Any]:
    """Merge a list with its patch, then order it; None stands for a list that is not there."""
    _check_patch_order(change or [], order, field.merge_key)
    if change is None:
        merged = before or []
    elif before is None:
        merged = _drop_directives(change)
    else:
        merged = _merge_list(before, change, field) if field.merges_list else change
    server_order = _server_order(before or [], change or [], field.merge_key)
    return _order_merged_list(merged, order, server_order, field.merge_key)


def _server_order(before: list[Any], change: list[Any], key: str) -> list[Any]:
    """Return the order that the list had on the server.

    Observed: an item that the patch adds takes the place of one that it deletes, and then counts
    as having been on the server.
    """
    deleted = {
        _hashable(item.get(key))
        for item in change
        if isinstance(item, dict) and item.get(DIRECTIVE) == "delete"
    }
    left = [
        item
        for item in before
        if not deleted or _hashable(_merge_key_value(item, key)) not in deleted
    ]
    if len(left) == len(before):
        return before
    known = {_hashable(_merge_key_value(item, key)) for item in left}
    plain = (item for item in change if DIRECTIVE not in item)
    added = [item for item in plain if _hashable(_merge_key_value(item, key)) not in known]
    return (left + added)[: len(before)]


def _check_patch_order(change: list[Any], order: list[Any], key: str) -> None:
    """Raise StrategicError unless the patch's items come in the order that it asks for."""
    if not change or not order:
        return
    items = [item for item in change if not (isinstance(item, dict) and DIRECTIVE in item)]
    at = 0
    for wanted in order:
        if at < len(items) and _merge_key_value(items[at], key) == _merge_key_value(wanted, key):
            at += 1
    if at < len(items):
        raise StrategicError(
            f"The order in patch list:\n{format_value(change)}\n "
            f"doesn't match {ORDER_PREFIX} list:\n{format_value(order)}\n"
        )
