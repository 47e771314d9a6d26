"""A status written beside everything else: only it is read, and only it is written anew.

Most writes of a cluster are these, of pods by their kubelets. What is in the metadata and the spec
is neither decoded nor encoded for them: its bytes are taken over as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.cluster import errors, strategic, strict
from everynode.cluster.bodies import media_of
from everynode.cluster.calls import Call, decode_object
from everynode.cluster.patching import check_options
from everynode.cluster.store import Record
from everynode.cluster.syntax import says_twice
from everynode.kube.requests import STRATEGIC_PATCH

Object = dict[str, Any]

_PLAIN_OPTIONS: Final = frozenset({"fieldManager", "timeout"})
_PLAIN_MEMBERS: Final = frozenset({"metadata", "status"})


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0


class _Stored(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    status: msgspec.Raw = msgspec.Raw()


_decode: Final[Callable[[bytes], _Stored]] = msgspec.json.Decoder(_Stored).decode


def patch_alone(call: Call, record: Record) -> Record | None:
    """Carry out an ordinary patch of a status; None, and nothing is done, if there is more to it.

    Whatever is unusual, be it another option, a mistake or a word of warning, is for the long way.
    """
    if not _is_plain(call):
        return None
    check_options(call)
    sent = _sent(call.request.body, record)
    stored = _decode(record.body) if sent is not None else None
    if sent is None or stored is None or not stored.status or not _stays(call, stored.metadata):
        return None
    before = decode_object(stored.status)
    status = _merged(before, sent, _status_type(call.kind.type_name or ""))
    if status is None:
        return None
    return _replaced(call, record, before, status, len(stored.status))


def _is_plain(call: Call) -> bool:
    kind = call.kind
    return (
        kind.rules.status_alone
        and call.subresource == "status"
        and media_of(call.request.content_type) == STRATEGIC_PATCH
        and call.query.keys() <= _PLAIN_OPTIONS
        and not call.tracked
    )


def _sent(body: bytes, record: Record) -> Object | None:
    """The status of a patch that has nothing else, but for the uid of whom it is meant for."""
    try:
        content = decode_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    status = content.get("status")
    if not isinstance(status, dict) or not content.keys() <= _PLAIN_MEMBERS:
        return None
    if content.get("metadata", {}) not in ({}, {"uid": record.uid}):
        return None
    return None if says_twice(body, content) else status


def _stays(call: Call, meta: _Metadata) -> bool:
    """Whether a write leaves the metadata as they are: neither ends the object nor cleans it up."""
    if meta.deletion_timestamp and not meta.deletion_grace_period_seconds:
        return False
    if not meta.annotations:
        return True
    known = {"metadata": {"annotations": meta.annotations}}
    return call.kind.rules.default_status(known) == known


@cache
def _status_type(type_name: str) -> str:
    return types.load()[type_name].fields["status"].ref


def _merged(before: Object, sent: Object, type_name: str) -> Object | None:
    try:
        merged = strategic.merge(before, sent, type_name)
    except strategic.StrategicError:
        return None
    return strict.converted(merged, type_name)


def _replaced(
    call: Call, record: Record, before: Object, status: Object, length: int
) -> Record | None:
    """Put a status in the place of the one before, which was so many bytes long."""
    new: Object = {"metadata": {}, "status": status}
    old: Object = {"metadata": {}, "status": before}
    rules = call.kind.rules
    rules.prepare_status(new, old, call)
    faults = rules.status_faults(new, old)
    if faults:
        raise errors.invalid(call.kind, call.name, faults)
    if new["status"] == before:
        return record
    head = record.body[: -length - 1]  # a status comes last
    body = b"%b%b}" % (head, msgspec.json.encode(new["status"]))
    fields = rules.select_again(new["status"], record.fields)
    return call.site.store.rewrite(call.collection, record, body, fields=fields)
