"""The versioned store: what every object is now, under one global resourceVersion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec
from sortedcontainers import SortedDict

from everynode.cluster.history import History, Log

Object = dict[str, Any]

_VERSION_MARK: Final = b'"resourceVersion":"'
_NEVER: Final = 1 << 63  # no version comes that far
_NO_LABELS: Final[dict[str, str]] = {}


class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of one object: its JSON, and the little that selectors ask for."""

    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    labels: dict[str, str]
    fields: tuple[str, ...]

    @property
    def key(self) -> str:
        """Where the object is kept; sorts as the real server's keys do."""
        return _key(self.namespace, self.name)


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class Change(msgspec.Struct, frozen=True, gc=False):
    """One step of history: an object as it became, and as it was before."""

    type: str  # ADDED, MODIFIED or DELETED
    record: Record
    previous: Record | None

    @property
    def version(self) -> int:
        """The resourceVersion at which this happened."""
        return self.record.version

    @property
    def size(self) -> int:
        """Bytes this step keeps alive."""
        return len(self.record.body) + 200


class Journal(Protocol):
    """Where changes go so that they outlive the process."""

    def append(self, collection: str, change: Change) -> None:
        """Take a change in; it is durable once the store's `durable` has passed its version."""
        ...

    async def room(self) -> None:
        """Wait until another change may be made."""
        ...


class Collection:
    """All objects of one resource."""

    def __init__(self, name: str, log: Log) -> None:
        self.name = name
        self.log = log
        self.records: SortedDict = SortedDict()

    def get(self, namespace: str, name: str) -> Record | None:
        """The object of that name, if there is one."""
        record: Record | None = self.records.get(_key(namespace, name))
        return record

    def scan(self, namespace: str = "", *, after: str = "") -> Iterator[Record]:
        """All objects in key order, of one namespace if one is named, after a key if one is."""
        low = after or (f"{namespace}/" if namespace else None)
        high = f"{namespace}0" if namespace else None  # "0" follows "/"
        for key in self.records.irange(low, high, inclusive=(not after, False)):
            yield self.records[key]

    def __len__(self) -> int:
        return len(self.records)


class Store:
    """Every collection, one counter of versions, and the history of what changed."""

    def __init__(self, *, history_bytes: int = 64 << 20) -> None:
        self.version = 1
        self.durable = 1  # the highest version that may be shown to anybody
        self.history = History(capacity=history_bytes)
        self.journal: Journal | None = None
        self.error: Exception | None = None  # why nothing can be kept any more
        self._collections: dict[str, Collection] = {}
        self._observers: dict[str, list[Callable[[Change], None]]] = {}
        self._settling: list[tuple[int, asyncio.Future[None]]] = []

    def collection(self, name: str) -> Collection:
        """The collection of that name; empty when nothing was ever put there."""
        found = self._collections.get(name)
        if found is None:
            found = Collection(name, self.history.log())
            self._collections[name] = found
        return found

    def collections(self) -> list[Collection]:
        """All collections, by name."""
        return [self._collections[name] for name in sorted(self._collections)]

    def observe(self, collection: str, observer: Callable[[Change], None]) -> None:
        """Have every change of a collection told, at once and before anybody else knows."""
        self._observers.setdefault(collection, []).append(observer)

    async def settle(self) -> None:
        """Wait until everything that was written so far is durable."""
        if self.durable < self.version and self.error is None:
            future = asyncio.get_running_loop().create_future()
            self._settling.append((self.version, future))
            await future
        if self.error is not None:
            raise self.error

    async def failure(self) -> Exception:
        """Wait for the day on which nothing can be kept any more, and say why."""
        while self.error is None:
            future = asyncio.get_running_loop().create_future()
            self._settling.append((_NEVER, future))
            await future
        return self.error

    def put(self, collection: Collection, obj: Object, *, fields: tuple[str, ...] = ()) -> Record:
        """Write an object under the next version; the version is set in the object as well."""
        meta, records = obj["metadata"], collection.records
        key = _key(meta.get("namespace", ""), meta["name"])
        previous: Record | None = records.get(key)
        record = make_record(obj, self.version + 1, fields=fields, previous=previous)
        self.version += 1
        if previous is None:
            records[key] = record
            self._commit(collection, Change("ADDED", record, None))
        else:
            dict.__setitem__(records, key, record)  # its place among the keys it has already
            self._commit(collection, Change("MODIFIED", record, previous))
        return record

    def rewrite(
        self, collection: Collection, previous: Record, body: bytes, *, fields: tuple[str, ...]
    ) -> Record:
        """Write another body of a stored object, with its labels, under the next version."""
        self.version += 1
        record = Record(
            namespace=previous.namespace,
            name=previous.name,
            uid=previous.uid,
            version=self.version,
            body=_renumbered(body, self.version),
            labels=previous.labels,
            fields=previous.fields if previous.fields == fields else fields,
        )
        dict.__setitem__(collection.records, record.key, record)  # where it is already
        self._commit(collection, Change("MODIFIED", record, previous))
        return record

    def remove(self, collection: Collection, record: Record) -> Record:
        """Take an object away; returns its last state, which carries the version of its end."""
        self.version += 1
        last = at_version(record, self.version)
        del collection.records[record.key]
        self._commit(collection, Change("DELETED", last, record))
        return last

    def restore(self, collection: Collection, record: Record) -> None:
        """Put back what was kept from an earlier life; no event, no new version."""
        collection.records[record.key] = record

    def resume(self, version: int) -> None:
        """Continue counting from the version an earlier life ended with."""
        self.version = self.durable = max(version, self.version)
        self.history.forget(self.version)

    def publish(self, version: int) -> None:
        """Everything up to this version is durable: show it to those who wait."""
        self.durable = version
        self.history.wake()
        self._release()

    def fail(self, error: Exception) -> None:
        """Nothing can be kept any more: whoever waits is told, and so is whoever comes."""
        self.error = error
        self._release()

    def _release(self) -> None:
        waiting, self._settling = self._settling, []
        for version, future in waiting:
            if version > self.durable and self.error is None:
                self._settling.append((version, future))
            elif not future.done():
                future.set_result(None)

    def _commit(self, collection: Collection, change: Change) -> None:
        self.history.append(collection.log, change)
        if self.journal is not None:
            self.journal.append(collection.name, change)
        else:
            self.durable = change.record.version
            collection.log.tell(change)
        for observer in self._observers.get(collection.name, ()):
            observer(change)


def make_record(
    obj: Object,
    version: int | None,
    *,
    fields: tuple[str, ...] = (),
    previous: Record | None = None,
) -> Record:
    """Encode an object as it is stored; without a version it is one that never will be.

    What selectors ask for is shared with the record before, as long as it is the same.
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
        body=msgspec.json.encode(ordered(obj)),
        labels=labels,
        fields=fields,
    )


def read_record(
    body: bytes, version: int, selectable: Callable[[Object], tuple[str, ...]] | None
) -> Record:
    """A record from the bytes in which it was kept."""
    obj: Object = msgspec.json.decode(body)
    meta = obj["metadata"]
    return Record(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta.get("uid", ""),
        version=version,
        body=body,
        labels=meta.get("labels") or _NO_LABELS,
        fields=selectable(obj) if selectable else (),
    )


_META_ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def ordered(obj: Object) -> Object:
    """The object with its members in the order in which Kubernetes writes them.

    The version comes before anything a user can choose freely, so that it can be found again
    in the bytes.
    """
    ordered_meta = ordered_metadata(obj["metadata"])
    first = {"kind": obj.get("kind"), "apiVersion": obj.get("apiVersion"), "metadata": ordered_meta}
    result: Object = {**first, **obj, "metadata": ordered_meta}
    if "status" in obj:
        result["status"] = result.pop("status")  # last
    return result


def ordered_metadata(meta: Object) -> Object:
    """The metadata of an object, in the order in which Kubernetes writes them."""
    return {key: meta[key] for key in _META_ORDER if key in meta}


def at_version(record: Record, version: int) -> Record:
    """The same content under another version."""
    body = _renumbered(record.body, version)
    return msgspec.structs.replace(record, version=version, body=body)


def _renumbered(body: bytes, version: int) -> bytes:
    start = body.index(_VERSION_MARK) + len(_VERSION_MARK)
    return b"%b%d%b" % (body[:start], version, body[body.index(b'"', start) :])
