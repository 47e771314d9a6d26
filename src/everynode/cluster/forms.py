"""In which form an answer is given: objects as they are, tables for people, or metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from everynode.api import keys
from everynode.cluster import table
from everynode.cluster.accepts import Accept
from everynode.cluster.calls import Call, decode_object
from everynode.cluster.errors import Refusal, bad_request
from everynode.cluster.store import Record

Object = dict[str, Any]

_VERSIONS: Final = ("v1", "v1beta1")
_METADATA: Final = "PartialObjectMetadata"
_INCLUDED: Final = ("Metadata", "Object", "None")


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
    """The form that the client of a call prefers."""
    accept = Accept(call.request.accept)
    if not accept.special:
        return Plain(call)
    if (version := accept.wanted("Table", _VERSIONS)) is not None:
        return Tables(call, version)
    for kind, whole in ((_METADATA, False), (f"{_METADATA}List", True)):
        if (version := accept.wanted(kind, _VERSIONS)) is not None:
            _check_number(call, kind, whole=whole)
            return Metadata(version)
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


def _check_number(call: Call, kind: str, *, whole: bool) -> None:
    """One object has its metadata, a list has a list of them, and a watch brings one by one."""
    lists = not call.name and not call.flag("watch")
    if lists is whole:
        return
    group = call.kind.group.partition(".")[0] or "core"
    shown = "unstructured.Unstructured" if call.kind.custom else f"{group}.{call.kind.kind}"
    what = f"is a list (*{shown}List)" if lists else f"is not a list (*{shown})"
    message = f"you requested {kind}, but the requested object {what}"
    raise Refusal(406, "NotAcceptable", message)


class Plain:
    """Objects as they are; items of lists do not repeat what the list says of them."""

    def __init__(self, call: Call) -> None:
        self._call = call
        kind = call.kind
        self._show: Callable[[Record], bytes] = call.show
        self._prefix = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()

    def one(self, record: Record) -> bytes:
        """The object."""
        return self._show(record)

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """A list, put together from stored bytes."""
        kind = self._call.kind
        if kind.custom:
            meta = {"continue": "", **meta}
        head = {"kind": kind.lists, "apiVersion": kind.api_version, "metadata": meta}
        show, prefix, cut = self._show, self._prefix, len(self._prefix)
        bodies = [show(record) for record in records]
        if not kind.custom:
            bodies = [b"{" + b[cut:] if b.startswith(prefix) else b for b in bodies]
        items = b",".join(bodies)
        return b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], items)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """An object with nothing but a version."""
        kind = self._call.kind
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
        """A table without rows."""
        meta = _bookmark_meta(version, initial_end=initial_end)
        body = {"kind": "Table", "apiVersion": f"meta.k8s.io/{self._version}", "metadata": meta}
        return msgspec.json.encode({**body, "columnDefinitions": None, "rows": []})

    def _render(self, records: Sequence[Record], meta: Object | None) -> bytes:
        headers, self._headers = self._headers, False
        made = table.render(
            self._call.kind.storage,
            [decode_object(self._call.show(record)) for record in records],
            now=self._call.site.clock.now(),
            columns=self._columns,
            include_object=self._include,
            metadata=meta,
            headers=headers,
        )
        made["apiVersion"] = f"meta.k8s.io/{self._version}"
        for row in made["rows"] if self._include == "Metadata" else ():
            row["object"] = {**row["object"], "apiVersion": made["apiVersion"]}
            row["object"]["metadata"] = _shown_metadata(row["object"]["metadata"])
        return msgspec.json.encode(made)


class Metadata:
    """Who an object is, without what it is."""

    def __init__(self, version: str) -> None:
        self._type = {"kind": _METADATA, "apiVersion": f"meta.k8s.io/{version}"}

    def one(self, record: Record) -> bytes:
        """The metadata of one object."""
        return msgspec.json.encode(self._partial(record))

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """The metadata of all objects."""
        items = [self._partial(record) for record in records]
        head = {"kind": f"{_METADATA}List", "apiVersion": self._type["apiVersion"]}
        return msgspec.json.encode({**head, "metadata": meta, "items": items})

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Metadata with nothing but a version."""
        meta = _bookmark_meta(version, initial_end=initial_end)
        return msgspec.json.encode({**self._type, "metadata": meta})

    def _partial(self, record: Record) -> Object:
        return {**self._type, "metadata": _shown_metadata(decode_object(record.body)["metadata"])}


def _shown_metadata(meta: Object) -> Object:
    """Without the annotation that a DaemonSet only has when it is shown as a whole."""
    annotations = meta.get("annotations")
    if not annotations or keys.TEMPLATE_GENERATION not in annotations:
        return meta
    kept = {name: text for name, text in annotations.items() if name != keys.TEMPLATE_GENERATION}
    rest = {name: value for name, value in meta.items() if name != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _bookmark_meta(version: int, *, initial_end: bool) -> Object:
    meta: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return meta
