"""Subresources: which verb handles a request to `.../NAME/SUBRESOURCE`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everynode.apiserver import errors
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.body import read_object
from everynode.apiserver.verbs import pod_subresources, read, scale, write
from everynode.apiserver.verbs.read import JSON_HEADERS
from everynode.kube.requests import Response

Verb = Callable[[ApiRequest], Response]

_VERB_OF_METHOD: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


def choose_verb(request: ApiRequest) -> Verb:
    """Return the verb that handles a request to a subresource; raises 405."""
    found = request.kind.subresource(request.subresource)
    name = _VERB_OF_METHOD.get(request.http.method, "")
    if found is None or name not in found.verbs:
        raise errors.method_not_allowed()
    return (
        _SPECIAL_VERBS.get((request.kind.plural, request.subresource, name)) or _DEFAULT_VERBS[name]
    )


def finalize(request: ApiRequest) -> Response:
    """PUT of `namespaces/finalize`: replace spec.finalizers of a namespace."""
    sent = read_object(request)
    record = request.record()
    namespace = request.stored(record)
    if write.resource_version_of(sent["metadata"]) not in (0, record.version):
        raise errors.stale_resource_version(request.kind, request.name)
    finalizers = (sent.get("spec") or {}).get("finalizers") or []
    namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
    if not finalizers:
        del namespace["spec"]["finalizers"]
    written = write.commit(request, namespace, record)
    return Response(200, representation_for(request).one(written), JSON_HEADERS)


_SPECIAL_VERBS: Final[dict[tuple[str, str, str], Verb]] = {
    ("pods", "binding", "create"): pod_subresources.bind,
    ("pods", "eviction", "create"): pod_subresources.evict,
    ("pods", "log", "get"): pod_subresources.log,
    **{
        ("pods", subresource, verb): pod_subresources.refuse_connection
        for subresource in ("attach", "exec", "portforward")
        for verb in ("create", "get")
    },
    ("namespaces", "finalize", "update"): finalize,
    **{
        (plural, "scale", name): choose_verb
        for plural in ("deployments", "replicasets")
        for name, choose_verb in (
            ("get", scale.get),
            ("update", scale.update),
            ("patch", scale.patch),
        )
    },
}
_DEFAULT_VERBS: Final[dict[str, Verb]] = {
    "get": read.get,
    "update": write.update,
    "patch": write.patch,
}
