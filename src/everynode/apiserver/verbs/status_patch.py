"""Fast path for status patches: decodes and encodes the status alone.

Most writes of a cluster are strategic merge patches of a pod's status by its kubelet. Metadata and
spec are neither decoded nor encoded for them: their bytes are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.apiserver import errors
from everynode.apiserver.patches import strategic
from everynode.apiserver.request.api_request import ApiRequest, decode_object
from everynode.apiserver.request.body import media_type_of
from everynode.apiserver.request.json_syntax import may_have_duplicate_keys
from everynode.apiserver.schema import field_validation
from everynode.apiserver.storage.store import Record
from everynode.apiserver.storage.stored_body import with_status
from everynode.apiserver.verbs.patch import check_patch_options
from everynode.kube.requests import STRATEGIC_PATCH

Object = dict[str, Any]

_FAST_OPTIONS: Final = frozenset({"fieldManager", "timeout"})
_FAST_MEMBERS: Final = frozenset({"metadata", "status"})


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0


class _StoredObject(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    status: msgspec.Raw = msgspec.Raw()


_decode: Final[Callable[[bytes], _StoredObject]] = msgspec.json.Decoder(_StoredObject).decode


def try_fast_status_patch(request: ApiRequest, record: Record) -> Record | None:
    """Apply an ordinary status patch; return None, with nothing written, if it is not one.

    The general path (verbs/write.py) handles everything unusual: other options, errors, warnings.
    """
    if not _is_eligible(request):
        return None
    check_patch_options(request)
    sent = _decode_patch(request.http.body, record)
    stored = _decode(record.body) if sent is not None else None
    if (
        sent is None
        or stored is None
        or not stored.status
        or not _metadata_stays_same(request, stored.metadata)
    ):
        return None
    before = decode_object(stored.status)
    status = _merge_status(before, sent, _status_type(request.kind.type_name or ""))
    if status is None:
        return None
    return _write_status(request, record, before, status, len(stored.status))


def _is_eligible(request: ApiRequest) -> bool:
    kind = request.kind
    return (
        kind.strategy.status_is_independent
        and request.subresource == "status"
        and media_type_of(request.http.content_type) == STRATEGIC_PATCH
        and request.query.keys() <= _FAST_OPTIONS
        and not request.tracks_fields
    )


def _decode_patch(body: bytes, record: Record) -> Object | None:
    """Return the status of a patch that has nothing else but the object's uid; otherwise None."""
    try:
        content = decode_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    status = content.get("status")
    if not isinstance(status, dict) or not content.keys() <= _FAST_MEMBERS:
        return None
    if content.get("metadata", {}) not in ({}, {"uid": record.uid}):
        return None
    return None if may_have_duplicate_keys(body, content) else status


def _metadata_stays_same(request: ApiRequest, meta: _Metadata) -> bool:
    """Whether the write leaves the metadata unchanged.

    A write removes an object whose deletion is complete, and a strategy may drop annotations.
    """
    if meta.deletion_timestamp and not meta.deletion_grace_period_seconds:
        return False
    if not meta.annotations:
        return True
    known = {"metadata": {"annotations": meta.annotations}}
    return request.kind.strategy.default_status(known) == known


@cache
def _status_type(type_name: str) -> str:
    return types.load()[type_name].fields["status"].ref


def _merge_status(before: Object, sent: Object, type_name: str) -> Object | None:
    try:
        merged = strategic.merge(before, sent, type_name)
    except strategic.StrategicError:
        return None
    return field_validation.try_fast_convert(merged, type_name)


def _write_status(
    request: ApiRequest, record: Record, before: Object, status: Object, length: int
) -> Record | None:
    """Validate a status and store it in the place of the old one, `length` bytes long."""
    new: Object = {"metadata": {}, "status": status}
    old: Object = {"metadata": {}, "status": before}
    strategy = request.kind.strategy
    strategy.prepare_status(new, old, request)
    faults = strategy.validate_status(new, old)
    if faults:
        raise errors.invalid(request.kind, request.name, faults)
    if new["status"] == before:
        return record
    body = with_status(record.body, new["status"], old_length=length)
    fields = strategy.selectable_after_status(new["status"], record.fields)
    return request.state.store.replace_body(request.collection, record, body, fields=fields)
