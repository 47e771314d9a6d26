"""Representations of an answer: plain objects, Tables, or PartialObjectMetadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec

from everynode.api import keys
from everynode.apiserver.errors import StatusError, bad_request
from everynode.apiserver.output import table
from everynode.apiserver.request.accept import Accept, parse_accept
from everynode.apiserver.request.api_request import ApiRequest, decode_object
from everynode.apiserver.storage.store import Record

Object = dict[str, Any]

_VERSIONS: Final = ("v1", "v1beta1")
_METADATA: Final = "PartialObjectMetadata"
_INCLUDE_OBJECT_VALUES: Final = ("Metadata", "Object", "None")
_HIDDEN_ANNOTATION: Final = keys.TEMPLATE_GENERATION.encode()
_BODY: Final[Callable[[Record], bytes]] = attrgetter("body")


class _Meta(msgspec.Struct, frozen=True):
    metadata: msgspec.Raw


_decode_meta: Final[Callable[[bytes], _Meta]] = msgspec.json.Decoder(_Meta).decode


class Representation(Protocol):
    """Encodes single objects, lists and watch events."""

    def one(self, record: Record) -> bytes:
        """Encode a single object."""
        ...

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """Encode a list."""
        ...

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Encode the object of a BOOKMARK event."""
        ...


def representation_for(request: ApiRequest) -> Representation:
    """Return the representation that the client prefers; Refusal (406) if it accepts none."""
    if request.form is None:
        request.form = _negotiate(request)
    return request.form


def _negotiate(request: ApiRequest) -> Representation:
    accept = parse_accept(request.http.accept)
    if not accept.may_want_other_than_json:
        return PlainObjects(request)
    # Kinds that cannot be listed (reviews) have no table.
    if (
        "list" in request.kind.verbs
        and (version := accept.preferred_version("Table", _VERSIONS)) is not None
    ):
        return TableRows(request, version)
    for kind, whole in ((_METADATA, False), (f"{_METADATA}List", True)):
        if (version := accept.preferred_version(kind, _VERSIONS)) is not None:
            form = MetadataOnly(request, version, whole=whole)
            if request.flag("watch"):
                form.check(whole=False)
            return form
    if not accept.plain:
        raise _not_acceptable(accept, watch=request.flag("watch"))
    return PlainObjects(request)


def _not_acceptable(accept: Accept, *, watch: bool) -> StatusError:
    kinds = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    if watch:
        kinds += ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    if accept.json:
        message = f"only the following media types are accepted: {kinds}"
        return StatusError(406, "NotAcceptable", message)
    message = f"406: Not Acceptable\n\nAvailable representations: {kinds}"
    return StatusError(406, "NotAcceptable", message, details={})


class PlainObjects:
    """Plain objects; the items of a list omit kind and apiVersion, as in kube-apiserver."""

    def __init__(self, request: ApiRequest) -> None:
        self._kind = request.kind
        # Most objects are sent as stored, and the request need not outlive its answer.
        self.one: Callable[[Record], bytes] = (
            _BODY if request.kind.conversion is None else request.show
        )

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """Encode a list by joining stored bytes."""
        kind = self._kind
        if kind.custom:
            meta = {"continue": "", **meta}
        head = {"kind": kind.list_kind_name, "apiVersion": kind.api_version, "metadata": meta}
        bodies = [self.one(record) for record in records]
        if not kind.custom:
            prefix = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
            cut = len(prefix)
            bodies = [b"{" + b[cut:] if b.startswith(prefix) else b for b in bodies]
        items = b",".join(bodies)
        return b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], items)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Encode an object that has only a resourceVersion."""
        kind = self._kind
        meta = _bookmark_meta(version, initial_end=initial_end)
        return msgspec.json.encode(
            {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        )


class TableRows:
    """Tables for kubectl; of the events of a watch only the first has column definitions."""

    def __init__(self, request: ApiRequest, version: str) -> None:
        self._request = request
        self._version = version
        self._include = request.query.get("includeObject") or "Metadata"
        if self._include not in _INCLUDE_OBJECT_VALUES:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{self._include}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._columns = request.kind.columns if request.kind.custom else None
        self._headers = True

    def one(self, record: Record) -> bytes:
        """Encode a table of one row."""
        return self._render([record], None)

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """Encode a table of all rows."""
        return self._render(records, meta)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Encode a row with only metadata, which carries the mark that ends the initial events."""
        kind = self._request.kind
        meta = _bookmark_meta(version, initial_end=initial_end)
        nothing = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        include = "Metadata" if initial_end and self._include == "None" else self._include
        return self._encode([nothing], None, include=include)

    def _render(self, records: Sequence[Record], meta: Object | None) -> bytes:
        objects = [decode_object(self._request.show(record)) for record in records]
        return self._encode(objects, meta, include=self._include)

    def _encode(self, objects: Sequence[Object], meta: Object | None, *, include: str) -> bytes:
        headers, self._headers = self._headers, False
        rendered = table.render(
            self._request.kind.storage,
            objects,
            now=self._request.state.clock.now(),
            columns=self._columns,
            include_object=include,
            metadata=meta,
            headers=headers,
        )
        rendered["apiVersion"] = f"meta.k8s.io/{self._version}"
        for row in rendered["rows"] if include == "Metadata" else ():
            row["object"] = {**row["object"], "apiVersion": rendered["apiVersion"]}
            row["object"]["metadata"] = _drop_template_generation(row["object"]["metadata"])
        return msgspec.json.encode(rendered)


class MetadataOnly:
    """PartialObjectMetadata: metadata without spec and status."""

    def __init__(self, request: ApiRequest, version: str, *, whole: bool) -> None:
        self._kind = request.kind
        self._whole = whole
        self._type = {"kind": _METADATA, "apiVersion": f"meta.k8s.io/{version}"}
        self._head = msgspec.json.encode(self._type)[:-1]

    def one(self, record: Record) -> bytes:
        """Encode the metadata of one object."""
        self.check(whole=False)
        return self._cut(record)

    def many(self, records: Sequence[Record], meta: Object) -> bytes:
        """Encode the metadata of all objects."""
        self.check(whole=True)
        items = b",".join(map(self._cut, records))
        head = {"kind": f"{_METADATA}List", "apiVersion": self._type["apiVersion"]}
        return b'%b,"items":[%b]}' % (msgspec.json.encode({**head, "metadata": meta})[:-1], items)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """Encode metadata that has only a resourceVersion."""
        meta = _bookmark_meta(version, initial_end=initial_end)
        return msgspec.json.encode({**self._type, "metadata": meta})

    def _cut(self, record: Record) -> bytes:
        """Cut the metadata out of the stored bytes; decode only if an annotation must be hidden."""
        meta = bytes(_decode_meta(record.body).metadata)
        if _HIDDEN_ANNOTATION in meta:
            return msgspec.json.encode(self.partial(decode_object(record.body)))
        return b'%b,"metadata":%b}' % (self._head, meta)

    def check(self, *, whole: bool) -> None:
        """Refuse a list for one object, and one object for a list; a write is done before that."""
        if whole is self._whole:
            return
        group = self._kind.group.partition(".")[0] or "core"
        shown = "unstructured.Unstructured" if self._kind.custom else f"{group}.{self._kind.kind}"
        requested = f"{_METADATA}List" if self._whole else _METADATA
        what = f"is a list (*{shown}List)" if whole else f"is not a list (*{shown})"
        message = f"you requested {requested}, but the requested object {what}"
        raise StatusError(406, "NotAcceptable", message)

    def partial(self, obj: Object) -> Object:
        """Return the PartialObjectMetadata of an object."""
        return {**self._type, "metadata": _drop_template_generation(obj["metadata"])}


def _drop_template_generation(meta: Object) -> Object:
    """Drop the template generation, which kube-apiserver shows on whole DaemonSets only."""
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
