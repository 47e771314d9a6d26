"""In which form an answer is given: objects as they are, tables for people, or metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec

from everynode.api import keys
from everynode.cluster import table
from everynode.cluster.accepts import Accept, accept_of
from everynode.cluster.calls import Call, decode_object
from everynode.cluster.errors import Refusal, bad_request
from everynode.cluster.store import Record

Object = dict[str, Any]

_VERSIONS: Final = ("v1", "v1beta1")
_METADATA: Final = "PartialObjectMetadata"
_INCLUDED: Final = ("Metadata", "Object", "None")
_HIDDEN: Final = keys.TEMPLATE_GENERATION.encode()
_BODY: Final[Callable[[Record], bytes]] = attrgetter("body")


class _Meta(msgspec.Struct, frozen=True):
    metadata: msgspec.Raw


_decode_meta: Final[Callable[[bytes], _Meta]] = msgspec.json.Decoder(_Meta).decode


class Form(Protocol):
    """How single objects, lists and the events of a watch are shown."""

    def one(self, record: Record) -> bytes:
        """A single object."""
        ...

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """A list."""
        ...

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """What a watch says to tell how far it has come."""
        ...


def form_of(call: Call) -> Form:
    """The form that the client of a call prefers; refused if there is none that it takes."""
    if call.form is None:
        call.form = _preferred(call)
    return call.form


def _preferred(call: Call) -> Form:
    accept = accept_of(call.request.accept)
    if not accept.special:
        return Plain(call)
    # What is only asked, and never listed, is not shown as a table.
    if "list" in call.kind.verbs and (version := accept.wanted("Table", _VERSIONS)) is not None:
        return Tables(call, version)
    for kind, whole in ((_METADATA, False), (f"{_METADATA}List", True)):
        if (version := accept.wanted(kind, _VERSIONS)) is not None:
            form = Metadata(call, version, whole=whole)
            if call.flag("watch"):
                form.check(whole=False)
            return form
    if not accept.plain:
        raise _not_acceptable(accept, watch=call.flag("watch"))
    return Plain(call)


def _not_acceptable(accept: Accept, *, watch: bool) -> Refusal:
    kinds = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    if watch:
        kinds += ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    if accept.json:
        message = f"only the following media types are accepted: {kinds}"
        return Refusal(406, "NotAcceptable", message)
    message = f"406: Not Acceptable\n\nAvailable representations: {kinds}"
    return Refusal(406, "NotAcceptable", message, details={})


class Plain:
    """Objects as they are; items of lists do not repeat what the list says of them."""

    def __init__(self, call: Call) -> None:
        self._kind = call.kind
        # Mostly objects are shown as they are stored, and the call is let go with its answer.
        self.one: Callable[[Record], bytes] = _BODY if call.kind.view is None else call.show

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """A list, put together from stored bytes."""
        kind = self._kind
        if kind.custom:
            meta = {"continue": "", **meta}
        head = {"kind": kind.lists, "apiVersion": kind.api_version, "metadata": meta}
        bodies = [self.one(record) for record in records]
        if not kind.custom:
            prefix = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
            cut = len(prefix)
            bodies = [b"{" + b[cut:] if b.startswith(prefix) else b for b in bodies]
        items = b",".join(bodies)
        return b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], items)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """An object with nothing but a version."""
        kind = self._kind
        meta = _bookmark_meta(version, initial_end=initial_end)
        return msgspec.json.encode(
            {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        )


class Tables:
    """Rows as kubectl prints them; of the events of a watch only the first has headers."""

    def __init__(self, call: Call, version: str) -> None:
        self._call = call
        self._version = version
        self._include = call.query.get("includeObject") or "Metadata"
        if self._include not in _INCLUDED:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{self._include}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._columns = call.kind.columns if call.kind.custom else None
        self._headers = True

    def one(self, record: Record) -> bytes:
        """A table of one row."""
        return self._render([record], None)

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """A table of all rows."""
        return self._render(records, meta)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """A row of nothing but a version; how else could it say that everything was sent?"""
        kind = self._call.kind
        meta = _bookmark_meta(version, initial_end=initial_end)
        nothing = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        told = "Metadata" if initial_end and self._include == "None" else self._include
        return self._encode([nothing], None, include=told)

    def _render(self, records: Sequence[Record], meta: Object | None) -> bytes:
        objects = [decode_object(self._call.show(record)) for record in records]
        return self._encode(objects, meta, include=self._include)

    def _encode(self, objects: Sequence[Object], meta: Object | None, *, include: str) -> bytes:
        headers, self._headers = self._headers, False
        made = table.render(
            self._call.kind.storage,
            objects,
            now=self._call.site.clock.now(),
            columns=self._columns,
            include_object=include,
            metadata=meta,
            headers=headers,
        )
        made["apiVersion"] = f"meta.k8s.io/{self._version}"
        for row in made["rows"] if include == "Metadata" else ():
            row["object"] = {**row["object"], "apiVersion": made["apiVersion"]}
            row["object"]["metadata"] = _shown_metadata(row["object"]["metadata"])
        return msgspec.json.encode(made)


class Metadata:
    """Who an object is, without what it is."""

    def __init__(self, call: Call, version: str, *, whole: bool) -> None:
        self._kind = call.kind
        self._whole = whole
        self._type = {"kind": _METADATA, "apiVersion": f"meta.k8s.io/{version}"}
        self._head = msgspec.json.encode(self._type)[:-1]

    def one(self, record: Record) -> bytes:
        """The metadata of one object."""
        self.check(whole=False)
        return self._cut(record)

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """The metadata of all objects."""
        self.check(whole=True)
        items = b",".join(map(self._cut, records))
        head = {"kind": f"{_METADATA}List", "apiVersion": self._type["apiVersion"]}
        return b'%b,"items":[%b]}' % (msgspec.json.encode({**head, "metadata": meta})[:-1], items)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Metadata with nothing but a version."""
        meta = _bookmark_meta(version, initial_end=initial_end)
        return msgspec.json.encode({**self._type, "metadata": meta})

    def _cut(self, record: Record) -> bytes:
        """The metadata as it is stored, where nothing is to be left out of it."""
        meta = bytes(_decode_meta(record.body).metadata)
        if _HIDDEN in meta:
            return msgspec.json.encode(self.partial(decode_object(record.body)))
        return b'%b,"metadata":%b}' % (self._head, meta)

    def check(self, *, whole: bool) -> None:
        """Refuse to give one for a list or a list for one; a write has been done all the same."""
        if whole is self._whole:
            return
        group = self._kind.group.partition(".")[0] or "core"
        shown = "unstructured.Unstructured" if self._kind.custom else f"{group}.{self._kind.kind}"
        asked = f"{_METADATA}List" if self._whole else _METADATA
        what = f"is a list (*{shown}List)" if whole else f"is not a list (*{shown})"
        message = f"you requested {asked}, but the requested object {what}"
        raise Refusal(406, "NotAcceptable", message)

    def partial(self, obj: Object) -> Object:
        """An object without what it is."""
        return {**self._type, "metadata": _shown_metadata(obj["metadata"])}


def _shown_metadata(meta: Object) -> Object:
    """Without the annotation that a DaemonSet only has when it is shown as a whole."""
    annotations = meta.get("annotations")
    if not annotations or keys.TEMPLATE_GENERATION not in annotations:
        return meta
    kept = {name: text for name, text in annotations.items() if name != keys.TEMPLATE_GENERATION}
    rest = {name: value for name, value in meta.items() if name != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _bookmark_meta(version: int, *, initial_end: bool) -> Object:
    meta: Object = {"resourceVersion": str(version)}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return meta
