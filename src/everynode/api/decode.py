"""How bytes from the API become typed objects, and what these share in memory.

Pods of one DaemonSet are alike in all but names, ids and times. What is alike is kept once, so that
a cached pod costs two kilobytes, and is forgotten again when nobody has asked for it for a while.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from everynode.api.objects import ControllerRevision, Node, Pod, PodAnnotations

_NO_ANNOTATIONS: Final = PodAnnotations()
_encode: Final = msgspec.msgpack.Encoder().encode
# Bytes that are no UTF-8 and JSON too deep to be true have errors of their own.
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
V = TypeVar("V")


class DecodeError(ValueError):
    """Bytes that are not the object they should be."""


# --- Sharing -----------------------------------------------------------------------------------


class Shared(dict[Hashable, Any]):
    """Equal values kept once, in two generations: what is not asked for again is forgotten.

    Only for what repeats over many objects: ids, versions and times never come here.
    `shared[value]` is the first value seen that equals this one.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._old: dict[Hashable, Any] = {}

    def __missing__(self, value: V) -> V:
        return self.keep(value, value)

    def keep(self, key: Hashable, value: V) -> V:
        """Keep a value unless the older generation has one, which then is young again."""
        kept = cast(V, self._old.get(key, value))
        if len(self) >= self._limit:
            self._old = dict(self)
            self.clear()
        self[key] = kept
        return kept


class Sharing:
    """What the objects of one kind share: texts, hashable parts, and what is written alike."""

    # Longer texts are rarely equal and would fill the table's memory.
    LONGEST: Final = 512

    __slots__ = ("_written", "parts", "texts")

    def __init__(self, limit: int = 4096) -> None:
        self.texts = Shared(limit)
        self.parts = Shared(limit)
        self._written = Shared(limit)

    def text(self, value: str) -> str:
        """A text of any length, kept once unless it is long."""
        return cast(str, self.texts[value]) if len(value) <= self.LONGEST else value

    def alike(self, value: V) -> V:
        """The first value seen that is written like this one, hashable or not."""
        key = _encode(value)  # faster than a key made of all its parts
        found = self._written.get(key)
        return self._written.keep(key, value) if found is None else cast(V, found)


def share_pod(pod: Pod, sharing: Sharing) -> None:
    """Let a pod nobody holds yet share what it has in common with others."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    texts = sharing.texts
    # What comes from the owner and its template is looked up in two goes.
    namespace, labels, owners, finalizers = sharing.alike(
        (meta.namespace, meta.labels, meta.owner_references, meta.finalizers)
    )
    force_setattr(meta, "namespace", namespace)
    force_setattr(meta, "labels", labels)
    force_setattr(meta, "owner_references", owners)
    force_setattr(meta, "finalizers", finalizers)
    gates, containers = sharing.alike((spec.readiness_gates, spec.containers))
    force_setattr(spec, "readiness_gates", gates)
    force_setattr(spec, "containers", containers)
    if meta.annotations == _NO_ANNOTATIONS:
        force_setattr(meta, "annotations", _NO_ANNOTATIONS)
    if spec.node_name:
        # The same text as the node's own name. The interpreter forgets it with its last user.
        force_setattr(spec, "node_name", sys.intern(spec.node_name))
        # Once bound, the node is known and the affinity is of no further interest.
        force_setattr(spec, "affinity", None)
    force_setattr(status, "phase", texts[status.phase])
    for condition in status.conditions:
        force_setattr(condition, "type", texts[condition.type])
        force_setattr(condition, "status", texts[condition.status])
        if condition.reason:
            force_setattr(condition, "reason", texts[condition.reason])
        if condition.message:
            force_setattr(condition, "message", sharing.text(condition.message))
    for container in status.container_statuses:
        force_setattr(container, "name", texts[container.name])
        force_setattr(container, "image", texts[container.image])
        force_setattr(container, "image_id", texts[container.image_id])
        if container.resources is not None:
            force_setattr(container, "resources", sharing.alike(container.resources))


def share_node(node: Node, sharing: Sharing) -> None:
    """Let a node nobody holds yet share what it has in common with others."""
    meta, texts = node.metadata, sharing.texts
    name = sys.intern(meta.name)
    labels = {
        texts[key]: name if value == name else texts[value] for key, value in meta.labels.items()
    }
    force_setattr(meta, "name", name)
    force_setattr(meta, "labels", labels)
    force_setattr(node, "spec", sharing.parts[node.spec])
    force_setattr(node, "status", sharing.parts[node.status])


def share_revision(revision: ControllerRevision, _: Sharing) -> None:
    """Let a revision hold its own copy of its data, not the whole answer it came in."""
    force_setattr(revision, "data", revision.data.copy())


_SHARE: Final[dict[Any, Callable[[Any, Sharing], None]]] = {
    Pod: share_pod,
    Node: share_node,
    ControllerRevision: share_revision,
}


# --- Decoding ----------------------------------------------------------------------------------


class Recent(dict[int, tuple[bytes, Any]]):
    """The last few objects of a kind, by the identity of the very bytes that they came in.

    Inside one process a server hands the same bytes to everybody. They are held as long as their
    identity is known here, so that it is nobody else's; and to look costs next to nothing.
    """

    LIMIT: Final = 64

    def keep(self, body: bytes, item: Any) -> None:
        """Remember an object; the oldest is forgotten when there are too many."""
        self[id(body)] = body, item
        if len(self) > self.LIMIT:
            del self[next(iter(self))]


_RECENT: Final[dict[Any, Recent]] = {}  # of each kind


class Decoder(Generic[T]):
    """Decodes all objects of one kind that one cache holds."""

    def __init__(self, kind: type[T], *, sharing: Sharing | None = None) -> None:
        self._name = kind.__name__
        self._recent = _RECENT.setdefault(kind, Recent())
        self._sharing = sharing or Sharing()
        self._share = _SHARE.get(kind)
        self._object = msgspec.json.Decoder(kind)

    def one(self, body: bytes | msgspec.Raw) -> T:
        """One object; raises DecodeError."""
        recent = self._recent.get(id(body))
        if recent is not None:
            return cast(T, recent[1])
        try:
            found = self._object.decode(body)
        except _UNREADABLE as error:
            found = self._second_try(body, error)
        if self._share is not None:
            self._share(found, self._sharing)
        if type(body) is bytes:  # not a view, which would hold all that it looks into
            self._recent.keep(body, found)
        return found

    def _second_try(self, body: bytes | msgspec.Raw, error: Exception) -> T:
        try:
            return self._object.decode(_without_nulls(body))
        except _UNREADABLE:
            raise DecodeError(f"{self._name} {_name_of(body)}: {error}") from None


def _without_nulls(body: bytes | msgspec.Raw) -> bytes:
    """The object without the nulls that Go clients may write where a list or a map belongs.

    The data of a revision is left as it is: there a null is part of what is compared.
    """
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    kept = {
        key: raw if key == "data" else _pruned(msgspec.json.decode(raw))
        for key, raw in parts.items()
    }
    return msgspec.json.encode(_pruned(kept))


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_pruned(each) for each in value]
    return value


class _NamedMeta(msgspec.Struct):
    name: Any = ""
    namespace: Any = ""


class _Named(msgspec.Struct):
    metadata: _NamedMeta


def _name_of(body: bytes | msgspec.Raw) -> str:
    """Namespace and name of an object that cannot be decoded, as far as they can be read."""
    try:
        meta = msgspec.json.decode(body, type=_Named).metadata
    except _UNREADABLE:
        return "without a readable name"
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)


decode_pod: Final = Decoder(Pod).one
