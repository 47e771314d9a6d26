"""Decoder: JSON of API objects to partial objects that share equal parts in memory.

Pods of one DaemonSet are alike in all but names, ids and times. Equal parts are kept once, so that
a cached pod costs two kilobytes, and are forgotten when no object has used them for a while.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from everynode.api.decode import (
    DECODE_ERRORS,
    NAMELESS,
    DecodeError,
    encode_without_nulls,
    read_key_and_uid,
)
from everynode.api.objects import ControllerRevision, Node, Pod, PodAnnotations

_NO_ANNOTATIONS: Final = PodAnnotations()
_encode: Final = msgspec.msgpack.Encoder().encode

T = TypeVar("T")
V = TypeVar("V")


# --- Sharing equal parts -----------------------------------------------------------------------


class InternTable(dict[Hashable, Any]):
    """A table that keeps equal values once, in two generations.

    `table[value]` is the first value seen that equals this one. When the young generation is full
    it becomes the old one; a value of the old generation that is looked up is young again, and the
    others are dropped with the next change of generations. Only for values that many objects have
    in common: ids, versions and times would fill the table.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._old: dict[Hashable, Any] = {}

    def __missing__(self, value: V) -> V:
        return self.keep(value, value)

    def keep(self, key: Hashable, value: V) -> V:
        """Keep a value in the young generation; the value that the old one has is preferred."""
        kept = cast(V, self._old.get(key, value))
        if len(self) >= self._limit:
            self._old = dict(self)
            self.clear()
        self[key] = kept
        return kept


class InternTables:
    """The tables that the objects of one kind share: texts, hashable parts, and any other parts."""

    # Longer texts are rarely equal and would fill the table's memory.
    LONGEST: Final = 512

    __slots__ = ("_by_encoding", "parts", "texts")

    def __init__(self, limit: int = 4096) -> None:
        self.texts = InternTable(limit)
        self.parts = InternTable(limit)
        self._by_encoding = InternTable(limit)

    def text(self, value: str) -> str:
        """Return the shared copy of a text; a long text is returned as it is."""
        return cast(str, self.texts[value]) if len(value) <= self.LONGEST else value

    def by_encoding(self, value: V) -> V:
        """Return the first value seen that has the same encoding, hashable or not."""
        try:
            key = _encode(value)  # faster than a key made of all its parts
        except OverflowError:  # a number beyond 64 bits: such an object is not shared
            return value
        found = self._by_encoding.get(key)
        return self._by_encoding.keep(key, value) if found is None else cast(V, found)


def intern_pod(pod: Pod, tables: InternTables) -> None:
    """Replace parts of a pod, which is not in use yet, by the equal parts of other pods."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    texts = tables.texts
    # The parts that come from the owner and its template are looked up in two steps.
    namespace, labels, owners, finalizers = tables.by_encoding(
        (meta.namespace, meta.labels, meta.owner_references, meta.finalizers)
    )
    force_setattr(meta, "namespace", namespace)
    force_setattr(meta, "labels", labels)
    force_setattr(meta, "owner_references", owners)
    force_setattr(meta, "finalizers", finalizers)
    gates, containers = tables.by_encoding((spec.readiness_gates, spec.containers))
    force_setattr(spec, "readiness_gates", gates)
    force_setattr(spec, "containers", containers)
    if meta.annotations == _NO_ANNOTATIONS:
        force_setattr(meta, "annotations", _NO_ANNOTATIONS)
    if spec.node_name:
        # The same text as the node's own name. The interpreter frees it with its last user.
        force_setattr(spec, "node_name", sys.intern(spec.node_name))
        # Once the pod is bound, its node is known and the affinity is not read any more.
        force_setattr(spec, "affinity", None)
    force_setattr(status, "phase", texts[status.phase])
    for condition in status.conditions:
        force_setattr(condition, "type", texts[condition.type])
        force_setattr(condition, "status", texts[condition.status])
        if condition.reason:
            force_setattr(condition, "reason", texts[condition.reason])
        if condition.message:
            force_setattr(condition, "message", tables.text(condition.message))
    for container in status.container_statuses:
        force_setattr(container, "name", texts[container.name])
        force_setattr(container, "image", texts[container.image])
        force_setattr(container, "image_id", texts[container.image_id])
        if container.resources is not None:
            force_setattr(container, "resources", tables.by_encoding(container.resources))


def intern_node(node: Node, tables: InternTables) -> None:
    """Replace parts of a node, which is not in use yet, by the equal parts of other nodes."""
    meta, texts = node.metadata, tables.texts
    name = sys.intern(meta.name)
    labels = {
        texts[key]: name if value == name else texts[value] for key, value in meta.labels.items()
    }
    force_setattr(meta, "name", name)
    force_setattr(meta, "labels", labels)
    force_setattr(node, "spec", tables.parts[node.spec])
    force_setattr(node, "status", tables.parts[node.status])


def copy_revision_data(revision: ControllerRevision, _: InternTables) -> None:
    """Give a revision its own copy of its data; the decoded view would keep the whole response."""
    force_setattr(revision, "data", revision.data.copy())


_INTERN: Final[dict[Any, Callable[[Any, InternTables], None]]] = {
    Pod: intern_pod,
    Node: intern_node,
    ControllerRevision: copy_revision_data,
}


# --- Decoding ----------------------------------------------------------------------------------


class RecentlyDecoded(dict[int, tuple[bytes, Any]]):
    """The last few objects of a kind, by the id() of the bytes that they were decoded from.

    Inside one process, the embedded server hands the same bytes object to every watch. The table
    holds the bytes, so that their id belongs to no other object; a lookup costs next to nothing.
    """

    LIMIT: Final = 64

    def keep(self, body: bytes, item: Any) -> None:
        """Keep an object; the oldest is dropped when there are too many."""
        self[id(body)] = body, item
        if len(self) > self.LIMIT:
            del self[next(iter(self))]


_RECENT: Final[dict[Any, RecentlyDecoded]] = {}  # by kind


class Decoder(Generic[T]):
    """Decodes the objects of one kind for one cache."""

    def __init__(self, kind: type[T], *, tables: InternTables | None = None) -> None:
        self._name = kind.__name__
        self._recent = _RECENT.setdefault(kind, RecentlyDecoded())
        self._tables = tables or InternTables()
        self._intern = _INTERN.get(kind)
        self._object = msgspec.json.Decoder(kind)

    def one(self, body: bytes | msgspec.Raw) -> T:
        """Decode one object; raises DecodeError."""
        recent = self._recent.get(id(body))
        if recent is not None:
            return cast(T, recent[1])
        try:
            found = self._object.decode(body)
        except DECODE_ERRORS as error:
            found = self._decode_without_nulls(body, error)
        if self._intern is not None:
            self._intern(found, self._tables)
        if type(body) is bytes:  # not a view, which would keep the whole page in memory
            self._recent.keep(body, found)
        return found

    def _decode_without_nulls(self, body: bytes | msgspec.Raw, error: Exception) -> T:
        """Try again: Go clients may write null where a list or a map belongs."""
        try:
            return self._object.decode(encode_without_nulls(body))
        except DECODE_ERRORS:
            name = read_key_and_uid(body)[0] or NAMELESS
            raise DecodeError(f"{self._name} {name}: {error}") from None
