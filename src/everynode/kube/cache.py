"""A copy of one collection in memory, found by key and by indexes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

# Deleted objects remembered, so that an event from before its deletion brings nobody back.
_GRAVES: Final = 1024
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Meta(Protocol):
    """The metadata that every cached object has."""

    @property
    def name(self) -> str:
        """The object's name."""
        ...

    @property
    def uid(self) -> str:
        """The object's unique id."""
        ...

    @property
    def resource_version(self) -> str:
        """The version the server gave this state of the object."""
        ...


class Object(Protocol):
    """Anything that can be cached."""

    @property
    def metadata(self) -> Meta:
        """The object's metadata."""
        ...


T = TypeVar("T", bound=Object)
Index = dict[str, dict[str, T]]  # objects by value and key


def key_of(item: Object) -> str:
    """Return `namespace/name`, or the name alone where there is no namespace."""
    meta = item.metadata
    namespace = getattr(meta, "namespace", "")
    return f"{namespace}/{meta.name}" if namespace else meta.name


def number(version: str) -> int:
    """A resource version as a number, 0 where it is not one; servers keep them comparable."""
    return int(version) if version.isdecimal() else 0


class Cache(Generic[T]):
    """Holds the objects of one collection, as far as they are kept, and tells of every change.

    Subscribers get the object before and after, None where there was or is none. With `quiet`,
    changes in nothing that was decoded are stored but not told. An object that `keep` does not
    want is treated as if it were not there.
    """

    def __init__(
        self,
        *,
        indexes: Mapping[str, Callable[[T], str]] | None = None,
        keep: Callable[[T], bool] | None = None,
        quiet: bool = False,
    ) -> None:
        self.version = 0  # everything up to here is in the cache
        self.synced = False  # whether it ever held everything
        self._objects: dict[str, T] = {}
        self._graves: OrderedDict[str, int] = OrderedDict()
        self._indexes: dict[str, Index[T]] = {name: {} for name in indexes or {}}
        self._indexed = [(of, self._indexes[name]) for name, of in (indexes or {}).items()]
        self._keep = keep
        self._quiet = quiet
        self._subscribers: list[Callable[[T | None, T | None], None]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def get(self, key: str) -> T | None:
        """Return the object of that key, if it is there."""
        return self._objects.get(key)

    def all(self) -> Mapping[str, T]:
        """Return all objects by key, in the order they came; a live view, not to be changed."""
        return MappingProxyType(self._objects)

    def by(self, index: str, value: str) -> Mapping[str, T]:
        """Return the objects with that value in that index, by key; a live view."""
        found = self._indexes[index].get(value)
        return MappingProxyType(found) if found else _NOTHING

    def subscribe(self, subscriber: Callable[[T | None, T | None], None]) -> None:
        """Have every change told, synchronously and in order."""
        self._subscribers.append(subscriber)

    # --- What a watch tells us -----------------------------------------------------------------

    def replace(self, objects: Iterable[T], version: str) -> None:
        """Take over a whole new list: tell what is new, what has changed and what has vanished.

        A list is taken as it is, even where it is older than what we hold: a server restored from
        a backup is right all the same.
        """
        self._graves.clear()
        keep = self._keep
        fresh = {key_of(item): item for item in objects if keep is None or keep(item)}
        for key, gone in [pair for pair in self._objects.items() if pair[0] not in fresh]:
            self._remove(key, gone)
        for key, item in fresh.items():
            before = self._objects.get(key)
            if before is None or before.metadata.resource_version != item.metadata.resource_version:
                self._put(key, before, item)
        self.version = number(version)
        self.synced = True

    def upsert(self, item: T) -> None:
        """Take in a new or changed object, unless we know a newer state of it."""
        key, version = key_of(item), number(item.metadata.resource_version)
        before = self._objects.get(key)
        if version and version <= self._known_version(key, before):
            return
        if version > self.version:
            self.version = version
        if self._keep is None or self._keep(item):
            if before is None:
                self._graves.pop(key, None)
            self._put(key, before, item)
        elif before is not None:
            self._remove(key, before)

    def delete(self, item: T) -> None:
        """Let go of an object, unless a newer one has taken its place."""
        key, version = key_of(item), number(item.metadata.resource_version)
        before = self._objects.get(key)
        if version and version < self._known_version(key, before):
            return
        self.version = max(self.version, version)
        self._bury(key, version)
        if before is not None:
            self._remove(key, before)

    def bookmark(self, version: str) -> None:
        """Everything up to this version has been told."""
        self.version = max(self.version, number(version))

    # --- Inside ----------------------------------------------------------------------------------

    def _known_version(self, key: str, known: T | None) -> int:
        if known is None:
            return self._graves.get(key, 0)
        return number(known.metadata.resource_version)

    def _bury(self, key: str, version: int) -> None:
        self._graves[key] = version
        self._graves.move_to_end(key)
        if len(self._graves) > _GRAVES:
            self._graves.popitem(last=False)

    def _put(self, key: str, before: T | None, item: T) -> None:
        self._objects[key] = item
        for value_of, index in self._indexed:
            value = value_of(item)
            if before is not None and (old := value_of(before)) != value:
                _drop(index, old, key)
            if value in index:
                index[value][key] = item
            elif value:
                index[value] = {key: item}
        if before is None or not self._quiet or not _same(before, item):
            for subscriber in self._subscribers:
                subscriber(before, item)

    def _remove(self, key: str, before: T) -> None:
        del self._objects[key]
        for value_of, index in self._indexed:
            _drop(index, value_of(before), key)
        for subscriber in self._subscribers:
            subscriber(before, None)


def _drop(index: Index[T], value: str, key: str) -> None:
    """Take an object out of an index, in which it is if it has a value there."""
    if value:
        entries = index[value]
        del entries[key]
        if not entries:
            del index[value]


def _same(before: Any, after: Any) -> bool:
    """Whether two states differ in nothing that was decoded, the version aside."""
    if not isinstance(before, msgspec.Struct) or not isinstance(after, msgspec.Struct):
        return False
    meta: Any = before.metadata  # type: ignore[attr-defined]
    version = after.metadata.resource_version  # type: ignore[attr-defined]
    aligned = msgspec.structs.replace(meta, resource_version=version)
    return bool(msgspec.structs.replace(before, metadata=aligned) == after)
