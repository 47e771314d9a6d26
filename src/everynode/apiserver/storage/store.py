"""Object store: the current version of every object, under one global resourceVersion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec
from sortedcontainers import SortedDict

from everynode.apiserver.errors import StatusError
from everynode.apiserver.storage.change_log import ChangeHistory, ChangeLog
from everynode.apiserver.storage.stored_body import (
    StoredBody,
    as_stored_body,
    encode_body,
    with_resource_version,
)

Object = dict[str, Any]

MAX_OBJECT_BYTES: Final = 1536 << 10  # etcd's default request limit
_NEVER: Final = 1 << 63  # higher than any version
# Pods are found by their node: spec.nodeName is the first of their selectable fields.
_INDEXED_BY_FIRST_FIELD: Final = ("pods",)
_NO_LABELS: Final[dict[str, str]] = {}


class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of one object: its JSON, and the values that selectors read."""

    namespace: str
    name: str
    uid: str
    version: int
    body: StoredBody
    labels: dict[str, str]
    fields: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key in its collection; sorts as etcd's keys do, namespace first."""
        return _key(self.namespace, self.name)


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write: the object after it, and before it."""

    type: str  # ADDED, MODIFIED or DELETED
    record: Record
    previous: Record | None

    @property
    def version(self) -> int:
        """The resourceVersion of the write."""
        return self.record.version

    @property
    def size(self) -> int:
        """Approximate bytes that the change log keeps for it."""
        return len(self.record.body) + 200


class JournalWriter(Protocol):
    """Persists changes; implemented by everynode.apiserver.storage.sqlite."""

    def append(self, collection: str, change: Change) -> None:
        """Queue a change; it is durable once the store's `durable` has reached its version."""
        ...

    async def wait_for_capacity(self) -> None:
        """Wait until another change may be queued."""
        ...


class Collection:
    """All objects of one resource."""

    def __init__(self, name: str, log: ChangeLog) -> None:
        self.name = name
        self.log = log
        self.records: SortedDict = SortedDict()
        # Keys by the value of the first selectable field; None where that is no index.
        self._by_field: dict[str, set[str]] | None = None
        if name in _INDEXED_BY_FIRST_FIELD:
            self._by_field = {}

    def get(self, namespace: str, name: str) -> Record | None:
        """Return the object of that name, or None."""
        record: Record | None = self.records.get(_key(namespace, name))
        return record

    def scan(self, namespace: str = "", *, after: str = "") -> Iterator[Record]:
        """Yield objects in key order, optionally of one namespace and after a key."""
        # `after` comes from a continue token, which a client can forge: stay in the namespace.
        low = max(after, f"{namespace}/") if namespace else after or None
        high = f"{namespace}0" if namespace else None  # "0" follows "/"
        for key in self.records.irange(low, high, inclusive=(not after, False)):
            yield self.records[key]

    def having(self, value: str, *, after: str = "") -> list[Record] | None:
        """Return the objects with this value of the first field, in key order; None: no index."""
        if self._by_field is None:
            return None
        keys = self._by_field.get(value, ())
        return [self.records[key] for key in sorted(keys) if key > after]

    def reindex(self, before: Record | None, after: Record | None) -> None:
        """Bring the index up to date with a change; unchanged fields are the same object."""
        index = self._by_field
        if index is None or (
            before is not None and after is not None and before.fields is after.fields
        ):
            return
        if before is not None and before.fields:
            keys = index[before.fields[0]]
            keys.discard(before.key)
            if not keys:
                del index[before.fields[0]]
        if after is not None and after.fields:
            index.setdefault(after.fields[0], set()).add(after.key)

    def __len__(self) -> int:
        return len(self.records)


class Store:
    """All collections, the resourceVersion counter, and the change logs."""

    def __init__(self, *, history_bytes: int = 64 << 20) -> None:
        self.version = 1
        self.durable = 1  # the highest version that clients may see
        self.history = ChangeHistory(capacity=history_bytes)
        self.journal: JournalWriter | None = None
        self.error: Exception | None = None  # why changes can no longer be persisted
        self._collections: dict[str, Collection] = {}
        self._observers: dict[str, list[Callable[[Change], None]]] = {}
        self._durability_waiters: list[tuple[int, asyncio.Future[None]]] = []

    def collection(self, name: str) -> Collection:
        """Return the collection of that name; it is created empty when first asked for."""
        found = self._collections.get(name)
        if found is None:
            found = Collection(name, self.history.log())
            self._collections[name] = found
        return found

    def collections(self) -> list[Collection]:
        """Return all collections, sorted by name."""
        return [self._collections[name] for name in sorted(self._collections)]

    def observe(self, collection: str, observer: Callable[[Change], None]) -> None:
        """Call `observer` with every change of a collection, synchronously within the write."""
        self._observers.setdefault(collection, []).append(observer)

    async def wait_durable(self) -> None:
        """Wait until every write so far is durable; raises the error if persisting has failed."""
        if self.durable < self.version and self.error is None:
            future = asyncio.get_running_loop().create_future()
            self._durability_waiters.append((self.version, future))
            await future
        if self.error is not None:
            raise self.error

    async def wait_for_failure(self) -> Exception:
        """Wait until persisting fails, and return the error."""
        while self.error is None:
            future = asyncio.get_running_loop().create_future()
            self._durability_waiters.append((_NEVER, future))
            await future
        return self.error

    def put(self, collection: Collection, obj: Object, *, fields: tuple[str, ...] = ()) -> Record:
        """Create or replace an object at the next version; sets its metadata.resourceVersion."""
        meta, records = obj["metadata"], collection.records
        key = _key(meta.get("namespace", ""), meta["name"])
        previous: Record | None = records.get(key)
        record = encode_record(obj, self.version + 1, fields=fields, previous=previous)
        check_size(record.body)
        self.version += 1
        collection.reindex(previous, record)
        if previous is None:
            records[key] = record
            self._commit(collection, Change("ADDED", record, None))
        else:
            dict.__setitem__(records, key, record)  # the key exists: skip the sorted insert
            self._commit(collection, Change("MODIFIED", record, previous))
        return record

    def replace_body(
        self, collection: Collection, previous: Record, body: StoredBody, *, fields: tuple[str, ...]
    ) -> Record:
        """Replace the encoded body of an object at the next version; its labels stay the same."""
        check_size(body)
        self.version += 1
        record = Record(
            namespace=previous.namespace,
            name=previous.name,
            uid=previous.uid,
            version=self.version,
            body=with_resource_version(body, self.version),
            labels=previous.labels,
            fields=previous.fields if previous.fields == fields else fields,
        )
        collection.reindex(previous, record)
        # The key exists: skip the sorted insert.
        dict.__setitem__(collection.records, record.key, record)
        self._commit(collection, Change("MODIFIED", record, previous))
        return record

    def remove(self, collection: Collection, record: Record) -> Record:
        """Remove an object; returns its last state with the resourceVersion of the removal."""
        self.version += 1
        last = with_version(record, self.version)
        collection.reindex(collection.records.pop(record.key), None)
        self._commit(collection, Change("DELETED", last, record))
        return last

    def restore(self, collection: Collection, record: Record) -> None:
        """Load an object from the data folder: no watch event, no new version."""
        collection.reindex(collection.records.get(record.key), record)
        collection.records[record.key] = record

    def resume(self, version: int) -> None:
        """Continue counting from the last version of the previous process."""
        self.version = self.durable = max(version, self.version)
        self.history.compact(self.version)

    def mark_durable(self, version: int) -> None:
        """Note that everything up to a version is durable; wake watches and waiting requests."""
        self.durable = version
        self.history.wake()
        self._wake_waiters()

    def fail(self, error: Exception) -> None:
        """Note that persisting has failed: current and later waits raise the error."""
        self.error = error
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiting, self._durability_waiters = self._durability_waiters, []
        for version, future in waiting:
            if version > self.durable and self.error is None:
                self._durability_waiters.append((version, future))
            elif not future.done():
                future.set_result(None)

    def _commit(self, collection: Collection, change: Change) -> None:
        self.history.append(collection.log, change)
        if self.journal is not None:
            self.journal.append(collection.name, change)
        else:
            self.durable = change.record.version
            collection.log.notify(change)
        for observer in self._observers.get(collection.name, ()):
            observer(change)


def check_size(body: bytes) -> None:
    """Raise etcd's error for an object that is larger than its limit."""
    if len(body) > MAX_OBJECT_BYTES:
        raise StatusError(500, "", "etcdserver: request is too large")


def encode_record(
    obj: Object,
    version: int | None,
    *,
    fields: tuple[str, ...] = (),
    previous: Record | None = None,
) -> Record:
    """Encode an object as a record; `version` is None for a dry-run create.

    Labels and fields that did not change are shared with the previous record: a watch then knows
    by identity that its selector gives the same answer (verbs/watch.py).
    """
    meta = obj["metadata"]
    if version is not None:
        meta["resourceVersion"] = str(version)
    labels = meta.get("labels") or _NO_LABELS
    if previous is not None:
        labels = previous.labels if previous.labels == labels else labels
        fields = previous.fields if previous.fields == fields else fields
    return Record(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta.get("uid", ""),
        version=version or 0,
        body=encode_body(obj),
        labels=labels,
        fields=fields,
    )


class _StoredMetadata(msgspec.Struct):
    """The metadata that a Record needs."""

    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None


def decode_record(
    body: bytes, version: int, selectable: Callable[[Object], tuple[str, ...]] | None
) -> Record:
    """Return the record of a body from the data folder; raises if it is not a stored object."""
    obj: Object = msgspec.json.decode(body, type=Object)
    meta = msgspec.convert(obj["metadata"], _StoredMetadata)
    stored = as_stored_body(body)
    if not isinstance(version, int):
        raise ValueError("its version is no number")
    return Record(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=version,
        body=stored,
        labels=meta.labels or _NO_LABELS,
        fields=selectable(obj) if selectable else (),
    )


def with_version(record: Record, version: int) -> Record:
    """Return the record with another resourceVersion, replaced in its bytes."""
    body = with_resource_version(record.body, version)
    return msgspec.structs.replace(record, version=version, body=body)
