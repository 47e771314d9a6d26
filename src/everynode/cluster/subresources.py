"""Parts of objects that have an address of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from everynode.cluster import errors, podparts, reads, scale, writes
from everynode.cluster.calls import Call
from everynode.cluster.forms import form_of
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.received import read_object
from everynode.kube.requests import Response

Object = dict[str, Any]
Verb = Callable[[Call], Response]

_METHODS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


def verb(call: Call) -> Verb:
    """What a request to a subresource does."""
    found = call.kind.subresource(call.subresource)
    name = _METHODS.get(call.request.method, "")
    if found is None or name not in found.verbs:
        raise errors.method_not_allowed()
    return _VERBS.get((call.kind.plural, call.subresource, name)) or _PARTS[name]


def finalize(call: Call) -> Response:
    """Take finalizers off a namespace."""
    sent = read_object(call)
    record = call.record()
    namespace = call.stored(record)
    if writes.version_of(sent["metadata"]) not in (0, record.version):
        raise errors.modified(call.kind, call.name)
    finalizers = (sent.get("spec") or {}).get("finalizers") or []
    namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
    if not finalizers:
        del namespace["spec"]["finalizers"]
    written = writes.commit(call, namespace, record)
    return Response(200, form_of(call).one(written), JSON_HEADERS)


_VERBS: Final[dict[tuple[str, str, str], Verb]] = {
    ("pods", "binding", "create"): podparts.bind,
    ("pods", "eviction", "create"): podparts.evict,
    ("pods", "log", "get"): podparts.log,
    ("namespaces", "finalize", "update"): finalize,
    **{
        (plural, "scale", name): verb
        for plural in ("deployments", "replicasets")
        for name, verb in (("get", scale.get), ("update", scale.update), ("patch", scale.patch))
    },
}
_PARTS: Final[dict[str, Verb]] = {
    "get": reads.get,
    "update": writes.update,
    "patch": writes.patch,
}
