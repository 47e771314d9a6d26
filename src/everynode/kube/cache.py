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


def key_of(item: Object) -> str:
    """Return `namespace/name`, or the name alone where there is no namespace."""
    namespace = getattr(item.metadata, "namespace", "")
    return f"{namespace}/{item.metadata.name}" if namespace else item.metadata.name


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
        self._index_of = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._index_of}
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
        fresh = {key_of(item): item for item in objects if self._wanted(item)}
        for key in [key for key in self._objects if key not in fresh]:
            self._remove(key)
        for key, item in fresh.items():
            before = self._objects.get(key)
            if before is None or before.metadata.resource_version != item.metadata.resource_version:
                self._put(key, item)
        self.version = number(version)
        self.synced = True

    def upsert(self, item: T) -> None:
        """Take in a new or changed object, unless we know a newer state of it."""
        key, version = key_of(item), number(item.metadata.resource_version)
        if version and version <= self._known_version(key):
            return
        self.version = max(self.version, version)
        if self._wanted(item):
            self._graves.pop(key, None)
            self._put(key, item)
        elif key in self._objects:
            self._remove(key)

    def delete(self, item: T) -> None:
        """Let go of an object, unless a newer one has taken its place."""
        key, version = key_of(item), number(item.metadata.resource_version)
        if version and version < self._known_version(key):
            return
        self.version = max(self.version, version)
        self._bury(key, version)
        if key in self._objects:
            self._remove(key)

    def bookmark(self, version: str) -> None:
        """Everything up to this version has been told."""
        self.version = max(self.version, number(version))

    # --- Inside ----------------------------------------------------------------------------------

    def _wanted(self, item: T) -> bool:
        return self._keep is None or self._keep(item)

    def _known_version(self, key: str) -> int:
        known = self._objects.get(key)
        return number(known.metadata.resource_version) if known else self._graves.get(key, 0)

    def _bury(self, key: str, version: int) -> None:
        self._graves[key] = version
        self._graves.move_to_end(key)
        if len(self._graves) > _GRAVES:
            self._graves.popitem(last=False)

    def _put(self, key: str, item: T) -> None:
        before = self._objects.get(key)
        self._objects[key] = item
        self._reindex(key, before, item)
        if before is None or not self._quiet or not _same(before, item):
            self._tell(before, item)

    def _remove(self, key: str) -> None:
        before = self._objects.pop(key)
        self._reindex(key, before, None)
        self._tell(before, None)

    def _reindex(self, key: str, before: T | None, after: T | None) -> None:
        for name, value_of in self._index_of.items():
            index = self._indexes[name]
            old = value_of(before) if before is not None else ""
            new = value_of(after) if after is not None else ""
            if old and old != new:
                entries = index[old]
                del entries[key]
                if not entries:
                    del index[old]
            if new and after is not None:
                index.setdefault(new, {})[key] = after

    def _tell(self, before: T | None, after: T | None) -> None:
        for subscriber in self._subscribers:
            subscriber(before, after)


def _same(before: Any, after: Any) -> bool:
    """Whether two states differ in nothing that was decoded, the version aside."""
    if not isinstance(before, msgspec.Struct) or not isinstance(after, msgspec.Struct):
        return False
    meta: Any = before.metadata  # type: ignore[attr-defined]
    version = after.metadata.resource_version  # type: ignore[attr-defined]
    aligned = msgspec.structs.replace(meta, resource_version=version)
    return bool(msgspec.structs.replace(before, metadata=aligned) == after)
