"""Objects drawn from the table of types: mostly right, hostile in places; and patches of them."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

from everynode.api import types
from everynode.api.types import FieldInfo, TypeInfo
from tests.fuzz.samples import Sample
from tests.fuzz.values import (
    LABEL_KEYS,
    NAMES,
    ODD_NAMES,
    ODD_TEXTS,
    Literal,
    hostile,
    scalar,
    special,
)

Object = dict[str, Any]

_DEEPEST: Final = 5
_FREE: Final = ("RawExtension", "FieldsV1", ".JSON")
_DIRECTIVES: Final = ("replace", "merge", "delete", "", "frobnicate")
_OPERATIONS: Final = ("add", "replace", "remove", "copy", "move", "test")


class Generator:
    """Draws values by their types; one in `calm` is not what it should be."""

    def __init__(self, random: Random, *, calm: int = 40) -> None:
        self.random = random
        self._calm = calm

    def odd(self) -> bool:
        """Whether the next thing is to be a hostile one."""
        return self.random.randrange(self._calm) == 0

    # --- Objects -------------------------------------------------------------------------------

    def whole(self, sample: Sample, name: str | None = None) -> Object:
        """An object of a kind: a right one with some more fields, and perhaps a wrong turn."""
        obj = sample.example(name or self.random.choice(NAMES[:4]))
        info = types.lookup(sample.type_name)
        for _ in range(self.random.randrange(4)):
            self._adorn(obj, info)
        for _ in range(self.random.choice((0, 0, 0, 0, 1, 1, 2))):
            self.spoil(obj)
        return obj

    def _adorn(self, obj: Object, info: TypeInfo) -> None:
        """Put one more field somewhere into an object."""
        while info.fields:
            key = self.random.choice(sorted(info.fields))
            field = info.fields[key]
            held = obj.get(key)
            item = field.items.ref if field.items is not None else ""
            if isinstance(held, dict) and field.ref and self.random.random() < 0.9:
                obj, info = held, types.lookup(field.ref)
            elif isinstance(held, list) and item and any(isinstance(each, dict) for each in held):
                maps = [each for each in held if isinstance(each, dict)]
                obj, info = self.random.choice(maps), types.lookup(item)
            else:
                obj[key] = self.value(field, key, 2)
                return

    def value(self, field: FieldInfo, name: str, depth: int = 0) -> Any:
        """A value for a field."""
        if self.odd():
            return hostile(self.random)
        if field.ref:
            return self.typed(field.ref, name, depth)
        if field.type == "array" and field.items is not None:
            return self._list(field, field.items, name, depth)
        if field.type == "object":
            item = field.values or FieldInfo(type="string")
            keys = self.random.sample(LABEL_KEYS, self.random.randrange(3))
            return {key: self.value(item, "", depth + 1) for key in keys}
        if not field.type:
            return self.free(depth)
        return scalar(self.random, field.type, name, field.enum, odd=self.odd())

    def _list(self, field: FieldInfo, items: FieldInfo, name: str, depth: int) -> list[Any]:
        count = self.random.choice((0, 1, 1, 2, 3))
        found = [self.value(items, name.removesuffix("s"), depth + 1) for _ in range(count)]
        key = field.patch_merge_key
        if key and not self.odd():
            # Most lists want another key in every item.
            taken = self.random.sample(NAMES, count)
            for item, one in zip(found, taken, strict=True):
                if isinstance(item, dict) and isinstance(item.get(key), str):
                    item[key] = one
        return found

    def typed(self, name: str, field: str = "", depth: int = 0) -> Any:
        """A value of a type of the table."""
        known = special(self.random, name, odd=self.odd())
        if known is not None:
            return known
        if name.endswith(_FREE):
            return self.free(depth)
        info = types.lookup(name)
        if not info.fields:
            return scalar(self.random, info.type or "string", field, (), odd=self.odd())
        chosen = set(info.required)
        optional = sorted(set(info.fields) - chosen)
        more = 0 if depth >= _DEEPEST else self.random.choice((0, 1, 1, 2, 3))
        chosen.update(self.random.sample(optional, min(more, len(optional))))
        if self.odd():
            chosen = set(sorted(chosen)[1:])
        return {key: self.value(info.fields[key], key, depth + 1) for key in sorted(chosen)}

    def free(self, depth: int = 0) -> Any:
        """Any JSON."""
        sort = self.random.randrange(6)
        if sort == 0 and depth < _DEEPEST:
            return {key: self.free(depth + 1) for key in self.random.sample(LABEL_KEYS, 2)}
        if sort == 1 and depth < _DEEPEST:
            return [self.free(depth + 1) for _ in range(self.random.randrange(3))]
        return scalar(
            self.random,
            self.random.choice(("string", "integer", "boolean", "number")),
            "",
            (),
            odd=self.odd(),
        )

    def spoil(self, obj: Object) -> None:
        """Make one thing in an object wrong."""
        spots = [spot for spot in places(obj) if spot[1:] != ("metadata",)]
        holder, key = self.random.choice(spots or [(obj, "metadata")])
        sort = self.random.randrange(6)
        if sort == 0:
            del holder[key]
        elif sort == 1 and isinstance(holder, dict):
            holder[self.random.choice(ODD_TEXTS)] = hostile(self.random)
        elif sort == 2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif sort == 3:
            holder[key] = None
        elif sort == 4 and isinstance(holder[key], str):
            holder[key] = self.random.choice(ODD_TEXTS)
        else:
            holder[key] = hostile(self.random)

    def name(self) -> str:
        """A name, mostly one that may be taken."""
        return self.random.choice(ODD_NAMES if self.odd() else NAMES[:4])

    # --- Patches -------------------------------------------------------------------------------

    def merge_patch(self, sample: Sample) -> Any:
        """A part of an object, with nulls in it."""
        obj = self.whole(sample)
        for key in ("apiVersion", "kind"):
            if not self.odd():
                obj.pop(key, None)
        if not self.odd() and isinstance(obj.get("metadata"), dict):
            obj["metadata"].pop("name", None)
        for _ in range(self.random.randrange(4)):
            found = places(obj)
            if not found:
                break
            holder, key = self.random.choice(found)
            if self.random.random() < 0.5:
                del holder[key]
            else:
                holder[key] = None
        return hostile(self.random) if self.odd() else obj

    def strategic_patch(self, sample: Sample) -> Any:
        """A merge patch with directives for lists and maps."""
        patch = self.merge_patch(sample)
        for _ in range(self.random.randrange(4)):
            maps = _maps(patch)
            if not maps:
                break
            held = self.random.choice(maps)
            lists = sorted(key for key, value in held.items() if isinstance(value, list))
            named = self.random.choice([*lists, "containers", "finalizers", "tolerations"])
            sort = self.random.randrange(5)
            if sort == 0:
                held["$patch"] = self.random.choice(_DIRECTIVES)
            elif sort == 1:
                items = [{"name": self.random.choice(NAMES)} for _ in range(2)]
                held[f"$setElementOrder/{named}"] = self.random.choice((items, ["a"], [], [None]))
            elif sort == 2:
                held[f"$deleteFromPrimitiveList/{named}"] = self.random.choice((["a"], [1], []))
            elif sort == 3:
                held["$retainKeys"] = self.random.choice((sorted(held), ["name"], [], [1]))
            else:
                held[f"${self.random.choice(('patch', 'retainKeys'))}"] = hostile(self.random)
        return patch

    def json_patch(self, sample: Sample) -> Any:
        """Some operations on places that the object has, or may have."""
        obj = self.whole(sample)
        found = pointers(obj)
        operations: list[Any] = []
        for _ in range(self.random.randrange(1, 6)):
            operation: Object = {
                "op": self.random.choice(_OPERATIONS),
                "path": self._pointer(found),
            }
            if operation["op"] in ("copy", "move"):
                operation["from"] = self._pointer(found)
            if operation["op"] in ("add", "replace", "test") or self.odd():
                operation["value"] = self._new_value(obj)
            if self.odd():
                self.spoil(operation)
            operations.append(operation)
        if self.odd():
            return hostile(self.random)
        return operations

    def _pointer(self, found: list[str]) -> str:
        path = self.random.choice(found)
        sort = self.random.randrange(8)
        if sort == 0:
            return path + self.random.choice(("/-", "/0", "/-1", "/99", "/01", "/a", "/", "/1e1"))
        if sort == 1 and self.odd():
            return self.random.choice(("", "/", "a", "//", "/~2", "/metadata/~", "/\ud800"))
        return path

    def _new_value(self, obj: Object) -> Any:
        if self.random.random() < 0.4:
            return hostile(self.random)
        found = places(obj)
        holder, key = self.random.choice(found)
        return copy.deepcopy(holder[key])

    def applied(self, sample: Sample, name: str) -> Any:
        """An applied configuration, at times with fields that another manager owns."""
        obj = self.whole(sample, name)
        if self.random.random() < 0.1 and isinstance(obj.get("metadata"), dict):
            obj["metadata"]["managedFields"] = self.random.choice(
                ([], None, [{}], self.managed_fields())
            )
        return obj

    def managed_fields(self) -> list[Any]:
        """Entries of managed fields, with sets of fields that may be none."""
        paths = ("f:spec", "f:data", 'k:{"name":"c"}', 'v:"a"', "i:0", ".", "f:", "k:{", "x", "k:1")
        entry: Object = {
            "manager": self.name(),
            "operation": self.random.choice(("Apply", "Update", "Other", "")),
            "apiVersion": self.random.choice(("v1", "apps/v1", "", "a/b/c")),
            "time": self.random.choice(("2024-01-01T00:00:00Z", "x", None)),
            "fieldsType": self.random.choice(("FieldsV1", "", "FieldsV2")),
            "fieldsV1": {self.random.choice(paths): {self.random.choice(paths): {}}},
        }
        if self.random.random() < 0.5:
            self.spoil(entry)
        return [entry] * self.random.choice((1, 1, 2))


Spot = tuple[Any, Any]


def places(value: Any) -> list[Spot]:
    """Every place in a value: what holds it, and under which key or index."""
    found: list[Spot] = []
    _walk(value, found)
    return found


def _walk(value: Any, found: list[Spot]) -> None:
    entries = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    for key, item in entries:
        found.append((value, key))
        _walk(item, found)


def _maps(value: Any) -> list[Object]:
    found = [held[key] for held, key in places(value)]
    return [each for each in [value, *found] if isinstance(each, dict)]


def pointers(value: Any, path: str = "") -> list[str]:
    """The JSON pointer of every place in a value."""
    found: list[str] = []
    entries = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        entries = ((str(index), item) for index, item in enumerate(value))  # type: ignore[assignment]
    for key, item in entries:
        here = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        found.append(here)
        if not isinstance(item, Literal):
            found += pointers(item, here)
    return found
