"""Cache: a copy of one collection in memory, with lookup by key and by index."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

# Versions of deleted objects that are kept, so that an older event does not bring an object back.
_MAX_TOMBSTONES: Final = 1024
_NO_OBJECTS: Final[Mapping[str, Any]] = MappingProxyType({})
NONE_UNREADABLE: Final[Mapping[str, str]] = MappingProxyType({})


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
    """Any object that has metadata."""

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


def parse_resource_version(version: str) -> int:
    """Return a resourceVersion as a number, 0 where it is not one; they can be compared.

    This is the only function for it in clients; the embedded server refuses what is not a number.
    """
    # Twenty digits hold every 64-bit number; Python refuses to convert very long ones.
    return int(version) if version.isdecimal() and len(version) <= 20 else 0


class Cache(Generic[T]):
    """Holds the objects of one collection and calls its subscribers with every change.

    Subscribers get the object before and after, None where there was or is none. With `quiet`, an
    object that changed in no decoded field is stored without calling subscribers. An object for
    which `keep` returns False is treated as if it did not exist.
    """

    def __init__(
        self,
        *,
        indexes: Mapping[str, Callable[[T], str]] | None = None,
        keep: Callable[[T], bool] | None = None,
        quiet: bool = False,
    ) -> None:
        self.version = 0  # all changes up to this resourceVersion are in the cache
        self.synced = False  # whether it has ever held the whole collection
        self._objects: dict[str, T] = {}
        self._tombstones: OrderedDict[str, int] = OrderedDict()
        self._indexes: dict[str, Index[T]] = {name: {} for name in indexes or {}}
        self._index_functions = [(of, self._indexes[name]) for name, of in (indexes or {}).items()]
        self._keep = keep
        self._quiet = quiet
        self._subscribers: list[Callable[[T | None, T | None], None]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def get(self, key: str) -> T | None:
        """Return the object of that key, or None."""
        return self._objects.get(key)

    def all(self) -> Mapping[str, T]:
        """Return all objects by key, in the order of arrival; a live, read-only view."""
        return MappingProxyType(self._objects)

    def by(self, index: str, value: str) -> Mapping[str, T]:
        """Return the objects with that value in that index, by key; a live view."""
        found = self._indexes[index].get(value)
        return MappingProxyType(found) if found else _NO_OBJECTS

    def subscribe(self, subscriber: Callable[[T | None, T | None], None]) -> None:
        """Call the subscriber with every change, synchronously and in order."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Callable[[T | None, T | None], None]) -> None:
        """Call the subscriber no more."""
        self._subscribers.remove(subscriber)

    # --- Consumer of a watch -------------------------------------------------------------------

    def replace(
        self, objects: Iterable[T], version: str, unread: Mapping[str, str] = NONE_UNREADABLE
    ) -> None:
        """Replace the whole content by a new list; subscribers get the differences.

        Objects that exist but cannot be decoded, given as uids by key, stay as they were.

        A list counts even where it is older than the cache: the server may have been restored from
        a backup.
        """
        self._tombstones.clear()
        keep = self._keep
        listed = {key_of(item): item for item in objects if keep is None or keep(item)}
        for key, gone in [pair for pair in self._objects.items() if pair[0] not in listed]:
            if unread.get(key) not in (gone.metadata.uid, ""):
                self._remove(key, gone)
        for key, item in listed.items():
            before = self._objects.get(key)
            if before is None or before.metadata.resource_version != item.metadata.resource_version:
                self._put(key, before, item)
        self.version = parse_resource_version(version)
        self.synced = True

    def upsert(self, item: T) -> None:
        """Store a new or changed object, unless a newer state of it is known."""
        key, version = key_of(item), parse_resource_version(item.metadata.resource_version)
        before = self._objects.get(key)
        if version and version <= self._known_version(key, before):
            return
        if version > self.version:
            self.version = version
        if self._keep is None or self._keep(item):
            if before is None:
                self._tombstones.pop(key, None)
            self._put(key, before, item)
        elif before is not None:
            self._remove(key, before)

    def delete(self, item: T) -> None:
        """Remove an object, unless a newer one of the same key has replaced it."""
        key, version = key_of(item), parse_resource_version(item.metadata.resource_version)
        before = self._objects.get(key)
        if version and version < self._known_version(key, before):
            return
        self.version = max(self.version, version)
        self._add_tombstone(key, version)
        if before is not None:
            self._remove(key, before)

    def bookmark(self, version: str) -> None:
        """Note that all changes up to this version have been received."""
        self.version = max(self.version, parse_resource_version(version))

    # --- Inside ----------------------------------------------------------------------------------

    def _known_version(self, key: str, known: T | None) -> int:
        if known is None:
            return self._tombstones.get(key, 0)
        return parse_resource_version(known.metadata.resource_version)

    def _add_tombstone(self, key: str, version: int) -> None:
        self._tombstones[key] = version
        self._tombstones.move_to_end(key)
        if len(self._tombstones) > _MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)

    def _put(self, key: str, before: T | None, item: T) -> None:
        self._objects[key] = item
        for value_of, index in self._index_functions:
            value = value_of(item)
            if before is not None and (old := value_of(before)) != value:
                _remove_from_index(index, old, key)
            if value in index:
                index[value][key] = item
            elif value:
                index[value] = {key: item}
        if before is None or not self._quiet or not _is_unchanged(before, item):
            for subscriber in self._subscribers:
                subscriber(before, item)

    def _remove(self, key: str, before: T) -> None:
        del self._objects[key]
        for value_of, index in self._index_functions:
            _remove_from_index(index, value_of(before), key)
        for subscriber in self._subscribers:
            subscriber(before, None)


def _remove_from_index(index: Index[T], value: str, key: str) -> None:
    """Remove an object from an index; one with an empty value is not in it."""
    if value:
        entries = index[value]
        del entries[key]
        if not entries:
            del index[value]


def _is_unchanged(before: Any, after: Any) -> bool:
    """Whether two states are equal in all decoded fields but the resourceVersion."""
    if not isinstance(before, msgspec.Struct) or not isinstance(after, msgspec.Struct):
        return False
    meta: Any = before.metadata  # type: ignore[attr-defined]
    version = after.metadata.resource_version  # type: ignore[attr-defined]
    aligned = msgspec.structs.replace(meta, resource_version=version)
    return bool(msgspec.structs.replace(before, metadata=aligned) == after)
