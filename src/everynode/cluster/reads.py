"""Reading: one object, a list in pages, and where a watch begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from everynode.cluster import budgets
from everynode.cluster.calls import Call, is_true
from everynode.cluster.errors import (
    Refusal,
    bad_option,
    bad_request,
    expired,
    too_large_version,
)
from everynode.cluster.forms import form_of
from everynode.cluster.selection import Selection, select
from everynode.cluster.store import Record
from everynode.cluster.watches import Terms, Watch
from everynode.kube.requests import Response

Object = dict[str, Any]

JSON_HEADERS: Final = {"content-type": "application/json"}


_ANY_VERSION: Final = -1


class Token(msgspec.Struct, frozen=True, rename={"version": "rv"}):
    """Where the next page of a list begins, and of which version it is."""

    version: int
    start: str


def get(call: Call) -> Response:
    """One object."""
    refresh_budgets(call)
    form = form_of(call)
    record = call.record()
    _check_fresh(call, call.query.get("resourceVersion", ""))
    return Response(200, form.one(record), JSON_HEADERS)


def list_objects(call: Call) -> Response:
    """All selected objects, or a page of them."""
    refresh_budgets(call)
    form = form_of(call)
    if "sendInitialEvents" in call.query:
        message = "Forbidden: sendInitialEvents is forbidden for list"
        raise _options_fault("sendInitialEvents", message)
    selection = selection_of(call)
    # Whoever takes any version gets all of it, as from the cache of a real server.
    limit = 0 if call.query.get("resourceVersion") == "0" else _number(call, "limit")
    version, after, exact = _point_in_time(call, limit)
    found: list[Record] = []
    more = False
    for record in _records(call, selection, version=version, after=after, exact=exact):
        if not selection.matches(record):
            continue
        if limit and len(found) == limit:
            more = True
            break
        found.append(record)
    meta: Object = {"resourceVersion": str(version)}
    if more:
        meta["continue"] = _token(Token(version, found[-1].key))
        if not selection.filtered:
            everything = _records(call, selection, version=version, after=after, exact=exact)
            meta["remainingItemCount"] = sum(1 for _ in everything) - len(found)
    return Response(200, form.many(found, meta), JSON_HEADERS)


def refresh_budgets(call: Call) -> None:
    """Nobody counts the pods of disruption budgets in the background, so it is done when asked."""
    if call.kind.storage == budgets.BUDGETS:
        budgets.refresh(call, call.namespace, call.name)


def selection_of(call: Call) -> Selection:
    """What the query selects."""
    fields = call.query.get("fieldSelector", "")
    if call.name:
        fields = f"{fields},metadata.name={call.name}" if fields else f"metadata.name={call.name}"
    return select(
        call.namespace,
        call.query.get("labelSelector", ""),
        fields,
        selectable=call.kind.rules.fields,
        custom=call.kind.custom,
    )


def watch(call: Call) -> Watch:
    """Begin a watch where the query says."""
    form = form_of(call)
    selection = selection_of(call)
    asked = call.query.get("resourceVersion", "")
    _check_version(asked)
    version = _version(asked)
    initial = call.query.get("sendInitialEvents")
    _check_watch_list(call, initial)
    bookmarks = call.flag("allowWatchBookmarks")
    begin_now = not version or is_true(initial)
    if initial is not None and not is_true(initial) and not version:
        since: int | None = call.site.store.version
    else:
        since = None if begin_now else version
    terms = Terms(
        since=since,
        bookmarks=bookmarks,
        initial_end=bookmarks and since is None,
        seconds=_watch_seconds(call),
    )
    return Watch(call.site.store, call.collection, selection, form=form, terms=terms)


def _watch_seconds(call: Call) -> float:
    asked = _number(call, "timeoutSeconds")
    return float(asked) if asked else call.site.clock.jitter(1800.0, 3600.0)


def _check_watch_list(call: Call, initial: str | None) -> None:
    match = call.query.get("resourceVersionMatch", "")
    if call.query.get("continue") and not call.query.get("resourceVersion"):
        message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        raise _options_fault("resourceVersionMatch", message)
    if initial is None:
        if match:
            raise _options_fault(
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
        raise bad_option("List", "resourceVersionMatch", *messages)


def _options_fault(path: str, message: str) -> Refusal:
    return bad_option("List", path, message)


def _point_in_time(call: Call, limit: int) -> tuple[int, str, bool]:
    """The version a list is of, the key it begins after, and whether it must be that version."""
    asked = call.query.get("resourceVersion", "")
    match = call.query.get("resourceVersionMatch", "")
    current = call.site.store.version
    if text := call.query.get("continue", ""):
        if match:
            message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
            raise _options_fault("resourceVersionMatch", message)
        if asked not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _read_token(text)
        if token.version == _ANY_VERSION:
            return current, token.start, False
        return token.version, token.start, True
    version = _version(asked)
    _check_match(asked, match)
    if version:
        _check_not_ahead(call, version)
    if version and (match == "Exact" or (limit and not match)):
        return version, "", True
    return current, "", False


def _check_match(asked: str, match: str) -> None:
    if not match:
        return
    if not asked:
        raise _options_fault(
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    if match == "Exact" and asked == "0":
        raise _options_fault(
            "resourceVersionMatch",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )
    if match not in ("Exact", "NotOlderThan"):
        raise _options_fault(
            "resourceVersionMatch",
            f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""',
        )


def _records(
    call: Call, selection: Selection, *, version: int, after: str, exact: bool
) -> Iterator[Record]:
    """The records of a version, in key order."""
    if not exact or version == call.site.store.version:
        return call.collection.scan(selection.namespace, after=after)
    changes = call.collection.log.since(version)
    if changes is None:
        raise _forgotten(after)
    if not changes:
        return call.collection.scan(selection.namespace, after=after)
    before: dict[str, Record | None] = {}
    for change in changes:
        before.setdefault(change.record.key, change.previous)
    records = {r.key: r for r in call.collection.scan(selection.namespace)}
    for key, record in before.items():
        if record is None:
            records.pop(key, None)
        else:
            records[key] = record
    return iter([records[key] for key in sorted(records) if key > after])


def _forgotten(after: str) -> Refusal:
    """What a list was of is gone; whoever had begun may go on with what there is now."""
    if not after:
        return expired("The resourceVersion for the provided list is too old.")
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.",
        metadata={"continue": _token(Token(_ANY_VERSION, after))},
    )


def _check_fresh(call: Call, asked: str) -> None:
    _check_version(asked)
    if version := _version(asked):
        _check_not_ahead(call, version)


def _check_version(asked: str) -> None:
    """Reads of one object and watches are refused as if it were the server's fault."""
    if asked and not _is_version(asked):
        raise Refusal(500, "", _not_a_version(asked))


def _check_not_ahead(call: Call, version: int) -> None:
    current = call.site.store.version
    if version > current:
        raise too_large_version(version, current)


def _version(text: str) -> int:
    if not text:
        return 0
    if not _is_version(text):
        raise bad_request(f"invalid resource version: {_not_a_version(text)}")
    return int(text)


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _not_a_version(text: str) -> str:
    why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    return f'resourceVersion: Invalid value: "{text}": {why}'


def _number(call: Call, name: str) -> int:
    text = call.query.get(name, "")
    if not text:
        return 0
    try:
        return max(0, int(text))
    except ValueError:
        why = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise bad_request(why) from None


def _token(token: Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> Token:
    try:
        return msgspec.json.decode(
            base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Token
        )
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error, ValueError) as error:
        why = f"invalid continue token: continue key is not valid: {error}"
        raise bad_request(why) from None
