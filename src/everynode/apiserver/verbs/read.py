"""GET, list and watch: one object, a list in pages, and where a watch starts."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from everynode.apiserver.errors import (
    StatusError,
    bad_request,
    expired,
    invalid_option,
    resource_version_too_large,
)
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.request.api_request import ApiRequest, is_true
from everynode.apiserver.request.strings import NumberError, parse_int, parse_uint
from everynode.apiserver.resources import pod_disruption_budgets
from everynode.apiserver.schema.go_format import quote
from everynode.apiserver.storage.selectors import Selection, parse_selection
from everynode.apiserver.storage.store import Record
from everynode.apiserver.verbs.watch import Watch, WatchOptions
from everynode.kube.requests import Response

Object = dict[str, Any]

JSON_HEADERS: Final = {"content-type": "application/json"}


_ANY_VERSION: Final = -1
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*")


class ContinueToken(msgspec.Struct, frozen=True, rename={"version": "rv"}):
    """The continue token of a list: its resourceVersion and the last key of the page."""

    version: int
    start: str


def get(request: ApiRequest) -> Response:
    """GET of one object."""
    refresh_budgets(request)
    form = representation_for(request)
    record = request.record()
    _check_resource_version(request, request.query.get("resourceVersion", ""))
    return Response(200, form.one(record), JSON_HEADERS)


def list_objects(request: ApiRequest) -> Response:
    """GET of a collection: all selected objects, or a page of them."""
    refresh_budgets(request)
    form = representation_for(request)
    if "sendInitialEvents" in request.query:
        message = "Forbidden: sendInitialEvents is forbidden for list"
        raise _invalid_list_option("sendInitialEvents", message)
    selection = selection_for(request)
    # `limit` is ignored at resourceVersion 0, as by the watch cache of kube-apiserver.
    limit = 0 if request.query.get("resourceVersion") == "0" else _int_option(request, "limit")
    version, after, exact = _point_in_time(request, limit)
    found: list[Record] = []
    more = False
    for record in _records_at(request, selection, version=version, after=after, exact=exact):
        if not selection.matches(record):
            continue
        if limit and len(found) == limit:
            more = True
            break
        found.append(record)
    meta: Object = {"resourceVersion": str(version)}
    if more:
        meta["continue"] = _encode_token(ContinueToken(version, found[-1].key))
        if not selection.filtered:
            everything = _records_at(request, selection, version=version, after=after, exact=exact)
            meta["remainingItemCount"] = sum(1 for _ in everything) - len(found)
    return Response(200, form.many(found, meta), JSON_HEADERS)


def refresh_budgets(request: ApiRequest) -> None:
    """Update the status of PodDisruptionBudgets before they are read; no controller does it."""
    if request.kind.storage == pod_disruption_budgets.BUDGETS:
        pod_disruption_budgets.refresh_statuses(request, request.namespace, request.name)


def selection_for(request: ApiRequest) -> Selection:
    """Return the namespace, label selector and field selector of a request."""
    for name in ("limit", "timeoutSeconds"):
        _int_option(request, name)  # an invalid number is an error even where it is not used
    fields = request.query.get("fieldSelector", "")
    if request.name:
        fields = (
            f"{fields},metadata.name={request.name}" if fields else f"metadata.name={request.name}"
        )
    return parse_selection(
        request.namespace,
        request.query.get("labelSelector", ""),
        fields,
        selectable=request.kind.strategy.fields,
        custom=request.kind.custom,
    )


def watch(request: ApiRequest) -> Watch:
    """Start a watch at the version that the query names."""
    form = representation_for(request)
    selection = selection_for(request)
    requested = request.query.get("resourceVersion", "")
    _check_version_syntax(requested)
    version = _parse_version(requested)
    initial = request.query.get("sendInitialEvents")
    _check_watch_list(request, initial)
    bookmarks = request.flag("allowWatchBookmarks")
    begin_now = not version or is_true(initial)
    if initial is not None and not is_true(initial) and not version:
        since_version: int | None = request.state.store.version
    else:
        since_version = None if begin_now else version
    options = WatchOptions(
        since_version=since_version,
        bookmarks=bookmarks,
        initial_end=bookmarks and since_version is None,
        timeout_seconds=_watch_seconds(request),
    )
    return Watch(request.state.store, request.collection, selection, form=form, options=options)


def _watch_seconds(request: ApiRequest) -> float:
    requested = _int_option(request, "timeoutSeconds")
    return float(requested) if requested else request.state.clock.jitter(1800.0, 3600.0)


def _check_watch_list(request: ApiRequest, initial: str | None) -> None:
    match = request.query.get("resourceVersionMatch", "")
    if request.query.get("continue") and not request.query.get("resourceVersion"):
        message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        raise _invalid_list_option("resourceVersionMatch", message)
    if initial is None:
        if match:
            raise _invalid_list_option(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden for watch unless "
                "sendInitialEvents is provided",
            )
        return
    if match != "NotOlderThan":
        needed = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        messages = [f"Forbidden: {needed}"]
        if match:
            messages.append(f'Unsupported value: "{match}": supported values: "NotOlderThan"')
        raise invalid_option("List", "resourceVersionMatch", *messages)


def _invalid_list_option(path: str, message: str) -> StatusError:
    return invalid_option("List", path, message)


def _point_in_time(request: ApiRequest, limit: int) -> tuple[int, str, bool]:
    """The version a list is of, the key it begins after, and whether it must be that version."""
    requested = request.query.get("resourceVersion", "")
    match = request.query.get("resourceVersionMatch", "")
    current = request.state.store.version
    if text := request.query.get("continue", ""):
        if match:
            message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
            raise _invalid_list_option("resourceVersionMatch", message)
        if requested not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _decode_token(text)
        if token.version == _ANY_VERSION:
            return current, token.start, False
        return token.version, token.start, True
    version = _parse_version(requested)
    _check_match(requested, match)
    if version:
        _check_not_ahead(request, version)
    if version and (match == "Exact" or (limit and not match)):
        return version, "", True
    return current, "", False


def _check_match(requested: str, match: str) -> None:
    if not match:
        return
    faults = []
    if not requested:
        faults.append(
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match == "Exact" and requested == "0":
        faults.append(
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        )
    if match not in ("Exact", "NotOlderThan"):
        faults.append(
            f'Unsupported value: {quote(match)}: supported values: "Exact", "NotOlderThan", ""'
        )
    if faults:
        raise invalid_option("List", "resourceVersionMatch", *faults)


def _records_at(
    request: ApiRequest, selection: Selection, *, version: int, after: str, exact: bool
) -> Iterator[Record]:
    """Return the records at a version, in key order; a past version is rebuilt from the log."""
    if not exact or version == request.state.store.version:
        return _current_records(request, selection, after=after)
    changes = request.collection.log.since_version(version)
    if changes is None:
        raise _list_expired(after)
    if not changes:
        return _current_records(request, selection, after=after)
    before: dict[str, Record | None] = {}
    for change in changes:
        before.setdefault(change.record.key, change.previous)
    records = {r.key: r for r in request.collection.scan(selection.namespace)}
    for key, record in before.items():
        if record is None:
            records.pop(key, None)
        else:
            records[key] = record
    return iter([records[key] for key in sorted(records) if key > after])


def _current_records(request: ApiRequest, selection: Selection, *, after: str) -> Iterator[Record]:
    """Return records in key order, those selected among them; others may be left out."""
    collection = request.collection
    if selection.first_field is not None:
        found = collection.having(selection.first_field, after=after)
        if found is not None:
            return iter(found)
    if selection.name and (selection.namespace or not request.kind.namespaced):
        record = collection.get(selection.namespace, selection.name)
        return iter([record] if record is not None and record.key > after else [])
    return collection.scan(selection.namespace, after=after)


def _list_expired(after: str) -> StatusError:
    """410: the version of a list is compacted; its token continues at the current version."""
    if not after:
        return expired("The resourceVersion for the provided list is too old.")
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.",
        metadata={"continue": _encode_token(ContinueToken(_ANY_VERSION, after))},
    )


def _check_resource_version(request: ApiRequest, requested: str) -> None:
    _check_version_syntax(requested)
    if version := _parse_version(requested):
        _check_not_ahead(request, version)


def _check_version_syntax(requested: str) -> None:
    """Raise 500 for a malformed resourceVersion: kube-apiserver does so for get and watch."""
    try:
        parse_uint(requested or "0")
    except NumberError as error:
        raise StatusError(500, "", _not_a_version(requested, error)) from None


def _check_not_ahead(request: ApiRequest, version: int) -> None:
    current = request.state.store.version
    if version > current:
        raise resource_version_too_large(version, current)


def _parse_version(text: str) -> int:
    try:
        return parse_uint(text or "0")
    except NumberError as error:
        raise bad_request(f"invalid resource version: {_not_a_version(text, error)}") from None


def _not_a_version(text: str, why: NumberError) -> str:
    return f"resourceVersion: Invalid value: {quote(text)}: {why}"


def _int_option(request: ApiRequest, name: str) -> int:
    text = request.query.get(name)
    if text is None:
        return 0
    try:
        return max(0, parse_int(text))
    except NumberError as error:
        raise bad_request(str(error)) from None


def _encode_token(token: ContinueToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> ContinueToken:
    try:
        if not _BASE64.fullmatch(text):
            raise ValueError("illegal base64 data")
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=ContinueToken)
    except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError) as error:
        raise _bad_token(f": {error}") from None
    if not token.version or not -(1 << 63) <= token.version < 1 << 63:
        raise _bad_token(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not token.start:
        raise _bad_token(": encoded start key empty (version meta.k8s.io/v1)")
    if posixpath.normpath(f"/{token.start}") != f"/{token.start}":
        raise _bad_token(f": {token.start}")
    return token


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid{why}")
