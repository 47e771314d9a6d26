"""Verbs: functions that build requests, one for each verb of the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from everynode.kube.requests import APPLY_PATCH, JSON, MERGE_PATCH, Request
from everynode.kube.resources import Resource

PAGE_SIZE: Final = 500  # objects per page of a list: kubectl's and client-go's size
_WRITE_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Seconds that we wait for the response to a write after the server's own limit.
_RESPONSE_GRACE: Final = 2.0


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A part of a collection: a namespace, labels, fields; by default all of it."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING: Final = ListOptions()
Query = tuple[tuple[str, str], ...]


def is_write(request: Request) -> bool:
    """Whether the request may change something on the server."""
    return request.method in _WRITE_METHODS


def get(resource: Resource, name: str, *, namespace: str = "", subresource: str = "") -> Request:
    """Read one object."""
    return Request("GET", resource.path(namespace, name, subresource=subresource))


def list_page(
    resource: Resource,
    *,
    options: ListOptions = EVERYTHING,
    token: str = "",
    limit: int = PAGE_SIZE,
) -> Request:
    """Read one page of a collection.

    The resource version is left out: the server then returns the most recent state, so that
    decisions after a start or a change of the leader are safe.
    """
    query = _non_empty(
        ("labelSelector", options.labels),
        ("fieldSelector", options.fields),
        ("limit", str(limit) if limit else ""),
        ("continue", token),
    )
    return Request("GET", resource.path(options.namespace), query)


def list_cached(resource: Resource, *, options: ListOptions, version: int) -> Request:
    """Read a small part of a collection from the server's watch cache.

    The answer is not older than this version; 0 accepts any.
    """
    match = "NotOlderThan" if version else ""
    query = _non_empty(
        ("labelSelector", options.labels),
        ("fieldSelector", options.fields),
        ("resourceVersion", str(version)),
        ("resourceVersionMatch", match),
    )
    return Request("GET", resource.path(options.namespace), query)


def watch(
    resource: Resource,
    *,
    version: str,
    seconds: int,
    options: ListOptions = EVERYTHING,
) -> Request:
    """Watch a collection from a resource version on, with bookmarks."""
    return _watch(resource, options, seconds, ("resourceVersion", version))


def watch_list(
    resource: Resource,
    *,
    seconds: int,
    options: ListOptions = EVERYTHING,
) -> Request:
    """Watch a collection as one consistent stream that begins with its present objects."""
    initial = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
    return _watch(resource, options, seconds, *initial)


def _watch(
    resource: Resource, options: ListOptions, seconds: int, *start: tuple[str, str]
) -> Request:
    """Watch a collection with bookmarks; `start` says from which state on."""
    query = _non_empty(
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        *start,
        ("timeoutSeconds", str(seconds)),
        ("labelSelector", options.labels),
        ("fieldSelector", options.fields),
    )
    return Request("GET", resource.path(options.namespace), query)


def create(
    resource: Resource,
    body: Any,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    manager: str = "",
    dry_run: bool = False,
    accept: str = JSON,
) -> Request:
    """Create an object; with a name and a subresource, POST to that (evictions, bindings)."""
    path = resource.path(namespace, name, subresource=subresource)
    query = _write_query(manager, dry_run=dry_run)
    return Request("POST", path, query, _encode(body), accept=accept)


def replace(
    resource: Resource,
    name: str,
    body: Any,
    *,
    namespace: str = "",
    subresource: str = "",
    manager: str = "",
    dry_run: bool = False,
) -> Request:
    """Replace an object; the resource version in the body is the precondition."""
    path = resource.path(namespace, name, subresource=subresource)
    return Request("PUT", path, _write_query(manager, dry_run=dry_run), _encode(body))


def patch(
    resource: Resource,
    name: str,
    body: Any,
    *,
    kind: str = MERGE_PATCH,
    namespace: str = "",
    subresource: str = "",
    manager: str = "",
    dry_run: bool = False,
    accept: str = JSON,
) -> Request:
    """Patch an object by a JSON, merge or strategic patch; `kind` is its media type."""
    path = resource.path(namespace, name, subresource=subresource)
    query = _write_query(manager, dry_run=dry_run)
    return Request("PATCH", path, query, _encode(body), kind, accept)


def apply(
    resource: Resource,
    name: str,
    body: Any,
    *,
    manager: str,
    namespace: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> Request:
    """Apply a configuration (server-side apply); it creates the object if it is missing."""
    query = (*_write_query(manager, dry_run=dry_run), ("force", "true" if force else "false"))
    path = resource.path(namespace, name)
    return Request("PATCH", path, query, _encode(body), APPLY_PATCH)


def delete(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    uid: str = "",
    version: str = "",
    grace_seconds: int | None = None,
    propagation: str = "",
    dry_run: bool = False,
    accept: str = JSON,
) -> Request:
    """Delete an object, if it is still the one with this uid at this resource version."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    preconditions = dict(_non_empty(("uid", uid), ("resourceVersion", version)))
    if preconditions:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation:
        options["propagationPolicy"] = propagation
    if dry_run:
        options["dryRun"] = ["All"]
    path = resource.path(namespace, name)
    return Request("DELETE", path, body=_encode(options), accept=accept)


def with_timeout(request: Request, seconds: float) -> Request:
    """Return the write with a server-side timeout: the server does not act after that."""
    whole = max(1, int(seconds))
    query = (*[pair for pair in request.query if pair[0] != "timeout"], ("timeout", f"{whole}s"))
    return msgspec.structs.replace(request, query=query, timeout=whole + _RESPONSE_GRACE)


def _write_query(manager: str, *, dry_run: bool) -> Query:
    return _non_empty(("fieldManager", manager), ("dryRun", "All" if dry_run else ""))


def _non_empty(*pairs: tuple[str, str]) -> Query:
    return tuple([pair for pair in pairs if pair[1]])


def _encode(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
