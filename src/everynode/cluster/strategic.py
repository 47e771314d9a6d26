"""Strategic merge patches: merges that know which lists are keyed and how to say `delete`."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from everynode.api import types
from everynode.api.types import FieldInfo
from everynode.cluster.gotext import show, type_of

Object = dict[str, Any]

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
ORDER_PREFIX: Final = "$setElementOrder"


class StrategicError(ValueError):
    """A patch that cannot be carried out."""


class FormatError(StrategicError):
    """A directive in the wrong form."""


class Field:
    """How one field is merged."""

    __slots__ = ("_items", "_map", "key", "listed", "merges")

    def __init__(self, info: FieldInfo) -> None:
        self.merges = "merge" in info.patch_strategy.split(",")  # whether a list does
        self.key = info.patch_merge_key  # what tells its items apart
        self.listed = info.items.ref if info.items is not None else ""
        self._items = self.listed if info.items is not None else info.ref
        self._map = info.ref or (info.values.ref if info.values is not None else "")

    @property
    def items(self) -> Guide:
        """The guide for the objects in a list."""
        return _guide(self._items)

    @property
    def map(self) -> Guide:
        """The guide for the one object, or for those in a map."""
        return _guide(self._map)


class Guide:
    """What a type says of merging its fields; below an untyped value it says nothing."""

    __slots__ = ("_fields",)

    def __init__(self, type_name: str) -> None:
        info = types.load().get(type_name)
        known = info.fields if info is not None else {}
        self._fields = {name: Field(field) for name, field in known.items()}

    def field(self, name: str) -> Field:
        """How a field is merged."""
        return self._fields.get(name, _PLAIN)


_PLAIN: Final = Field(FieldInfo())
_guide: Final = cache(Guide)  # the table has an end, and is the same for everybody
_DEEP: Final = frozenset({dict, list, type(None)})  # what is not simply taken over


def merge(original: Object, patch: Object, type_name: str) -> Object:
    """The patched object; neither argument is changed. Raises StrategicError."""
    return _merge_map(original, patch, _guide(type_name))


def _merge_map(original: Object, patch: Object, guide: Guide) -> Object:
    if "$" in "".join(patch):
        return _merge_directed(original, patch, guide)
    out = {**original, **patch}
    if _DEEP.isdisjoint(map(type, patch.values())):
        return out
    for key, value in patch.items():
        if value is None:
            del out[key]
        elif type(value) is dict or type(value) is list:
            _merge_member(out, key, value, original.get(key), guide)
    return out


def _merge_directed(original: Object, patch: Object, guide: Guide) -> Object:
    """The same for a patch that may say more than what is to be there."""
    if DIRECTIVE in patch:
        return _directed(patch)
    out = dict(original)
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        out = _retain(out, rest)
    _order_lists(out, rest, guide)
    for key, value in rest.items():
        if key.startswith(DELETE_PREFIX):
            _delete_scalars(out, key, value)
        elif value is None:
            out.pop(key, None)
        else:
            _merge_member(out, key, value, out.get(key), guide)
    return out


def _merge_member(out: Object, key: str, value: Any, before: Any, guide: Guide) -> None:
    """Merge one member with what was there before, into the object that is being made."""
    if isinstance(before, dict) and isinstance(value, dict):
        out[key] = _merge_map(before, value, guide.field(key).map)
    elif isinstance(before, list) and isinstance(value, list):
        # As observed: a list that is replaced keeps even its directives, a new one does not.
        field = guide.field(key)
        out[key] = _merge_list(before, value, field) if field.merges else value
    else:
        fresh = _without_directives(value)
        if fresh is _NOTHING:
            out.pop(key, None)
        else:
            out[key] = fresh


def _directed(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise StrategicError(f"unknown patch type: {show(directive)} in map: {show(patch)}")


def _retain(original: Object, patch: Object) -> Object:
    """Carry out $retainKeys: everything it does not name goes."""
    keys = patch.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise FormatError("invalid patch format of retainKeys")
    for key, value in patch.items():
        special = key.startswith((DELETE_PREFIX, ORDER_PREFIX))
        if value is not None and not special and key not in keys:
            raise FormatError("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}


def _delete_scalars(out: Object, key: str, value: Any) -> None:
    name = _named(key, DELETE_PREFIX, "invalid patch format of primitive list")
    before = out.get(name)
    if value is None:
        out.pop(name, None)
    elif isinstance(before, list) and isinstance(value, list):
        out[name] = [item for item in before if item not in value]


def _named(key: str, prefix: str, complaint: str) -> str:
    """The field that a directive is about."""
    start, slash, name = key.partition("/")
    if start != prefix or not slash:
        raise FormatError(complaint)
    return name


_NOTHING: Final = object()


def _without_directives(value: Any) -> Any:
    """A value that is new as a whole: directives and nulls in it have nothing to act on."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _NOTHING
        if _DEEP.isdisjoint(map(type, value.values())):
            return value
        kept = ((k, _without_directives(v)) for k, v in value.items() if v is not None)
        return {key: child for key, child in kept if child is not _NOTHING}
    if isinstance(value, list):
        found = (_without_directives(item) for item in value)
        return [item for item in found if item is not _NOTHING]
    return value


# --- Lists -------------------------------------------------------------------------------------


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    known = _merge_known(original, patch, field) if field.key else None
    return _merge_items(original, patch, field) if known is None else known


def _merge_known(original: list[Any], patch: list[Any], field: Field) -> list[Any] | None:
    """The usual cases: items that are there, in their order; all of them and more; only new ones.

    None when there is more to it, be it another order, a directive or a mistake.
    """
    key, guide = field.key, field.items
    try:
        known = {item[key]: item for item in original}
        sent = {item[key]: item for item in patch}
        if len(known) < len(original) or len(sent) < len(patch):
            return None
        if any(DIRECTIVE in item for item in patch):
            return None
    except (KeyError, TypeError):
        return None
    made = {
        name: _merge_map(known[name], item, guide) if name in known else _new_item(item)
        for name, item in sent.items()
    }
    if known.keys() <= made.keys():
        return list(made.values())
    if known.keys().isdisjoint(made):
        return [*made.values(), *original]
    if [name for name in known if name in made] == list(made):
        return list({**known, **made}.values())
    return None


def _new_item(item: Object) -> Object:
    # Nulls in it mean nothing to whoever reads it; without them that is quick.
    return {name: value for name, value in item.items() if value is not None}


def _merge_items(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    if not original and not patch:
        return original
    if not _of_objects(original, patch):
        merged = list(dict.fromkeys([*original, *patch]))
        return _arrange(merged, patch, original, "")
    key = field.key
    if not key:
        name = field.listed.rsplit(".", 1)[-1]
        raise StrategicError(f"cannot merge lists without merge key for {name}")
    original, patch = _special_items(original, patch, key)
    merged = list(original)
    names = [item.get(key, _NOTHING) for item in merged]
    for item in patch:
        if key not in item:
            raise _no_key(item, key)
        if item[key] in names:
            at = names.index(item[key])
            merged[at] = _merge_map(merged[at], item, field.items)
        else:
            merged.append(_new_item(item))
            names.append(item[key])
    return _arrange(merged, patch, original, key)


def _of_objects(*lists: list[Any]) -> bool:
    """Whether the items are objects; they must all be of one sort."""
    if all(type(item) is dict for items in lists for item in items):
        return any(lists)
    sorts = {type_of(item): None for items in lists for item in items}
    if "[]interface {}" in sorts:
        raise StrategicError("lists of lists are not supported")
    if len(sorts) > 1:
        raise StrategicError(f"list element types are not identical: {show(list(lists))}")
    return "map[string]interface {}" in sorts


def _special_items(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the items that are directives; the others are what is left of the patch."""
    plain: list[Any] = []
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE, _NOTHING)
        if directive is _NOTHING:
            plain.append(item)
        elif directive == "delete":
            if key not in item:
                raise _no_key(item, key)
            original = [old for old in original if old.get(key, _NOTHING) != item[key]]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise StrategicError(f"unknown patch type: {show(directive)} in map: {show(item)}")
    return (plain, []) if replace else (original, plain)


def _no_key(item: Object, key: str) -> StrategicError:
    return StrategicError(f"map: {show(item)} does not contain declared merge key: {key}")


def _identity(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _no_key(item if isinstance(item, dict) else {}, key)
    return item[key]


def _identities(items: list[Any], key: str) -> list[Any]:
    try:
        return [item[key] for item in items] if key else items
    except (KeyError, TypeError):
        return [_identity(item, key) for item in items]


def _distinct(values: list[Any]) -> bool:
    """Whether no value comes twice; the lists are short, and not every value has a hash."""
    return not any(values.index(value) != at for at, value in enumerate(values))


def _arrange(merged: list[Any], order: list[Any], server_order: list[Any], key: str) -> list[Any]:
    """The items in the patch's order; the server's own among them where they were before."""
    wanted, names, served = (_identities(items, key) for items in (order, merged, server_order))
    kept = names == served and [name for name in names if name in wanted] == wanted
    if (kept or names == wanted) and _distinct(names):
        return merged
    ranks = [wanted.index(name) if name in wanted else -1 for name in names]
    ours = [at for at, rank in enumerate(ranks) if rank < 0]
    theirs = [at for at, rank in enumerate(ranks) if rank >= 0]
    theirs.sort(key=ranks.__getitem__)
    out: list[int] = []
    while ours and theirs:
        left, right = names[ours[0]], names[theirs[0]]
        known = left in served and right in served
        first = ours if known and served.index(left) < served.index(right) else theirs
        out.append(first.pop(0))
    return [merged[at] for at in out + ours + theirs]


def _order_lists(out: Object, patch: Object, guide: Guide) -> None:
    """Carry out $setElementOrder together with the list it is about."""
    for directive in [key for key in patch if key.startswith(ORDER_PREFIX)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise _bad_argument(order)
        complaint = "invalid patch format of setElementOrder list"
        name = _named(directive, ORDER_PREFIX, complaint)
        before, change = out.get(name), patch.get(name)
        for value in (before, change):
            if value is not None and not isinstance(value, list):
                raise _bad_argument(value)
        if before is None and change is None:
            continue
        field = guide.field(name)
        _match_order(change or [], order, field.key)
        if change is None:
            merged = before or []
        elif before is None:
            merged = _without_directives(change)
        else:
            merged = _merge_list(before, change, field) if field.merges else change
        patch.pop(name, None)
        served = _served_order(before or [], change or [], field.key)
        out[name] = _arrange(merged, order, served, field.key)


def _served_order(before: list[Any], change: list[Any], key: str) -> list[Any]:
    """The order the list had on the server.

    As observed: the place of an item that the patch deletes is taken by one that it adds, which
    then counts as having been there.
    """
    deleted = [
        item.get(key)
        for item in change
        if isinstance(item, dict) and item.get(DIRECTIVE) == "delete"
    ]
    left = [item for item in before if not deleted or _identity(item, key) not in deleted]
    if len(left) == len(before):
        return before
    known = [_identity(item, key) for item in left]
    plain = (item for item in change if DIRECTIVE not in item)
    added = [item for item in plain if _identity(item, key) not in known]
    return (left + added)[: len(before)]


def _bad_argument(value: Any) -> StrategicError:
    return StrategicError(f"expected a []interface {{}}, but received a {type_of(value)}")


def _match_order(change: list[Any], order: list[Any], key: str) -> None:
    """The items of a patch must come in the order that the patch itself asks for."""
    if not change or not order:
        return
    items = [item for item in change if not (isinstance(item, dict) and DIRECTIVE in item)]
    at = 0
    for wanted in order:
        if at < len(items) and _identity(items[at], key) == _identity(wanted, key):
            at += 1
    if at < len(items):
        raise StrategicError(
            f"The order in patch list:\n{show(change)}\n doesn't match {ORDER_PREFIX} list:\n"
            f"{show(order)}\n"
        )
