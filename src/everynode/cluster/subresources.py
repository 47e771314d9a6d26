"""Parts of objects that have an address of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.cluster import errors, reads, writes
from everynode.cluster.bodies import read_body, read_object
from everynode.cluster.calls import Call
from everynode.cluster.reads import JSON_HEADERS
from everynode.kube.requests import Response

Object = dict[str, Any]
Verb = Callable[[Call], Response]

_METHODS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}
_SUCCESS: Final = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


def answer(call: Call) -> Response:
    """Find the verb of a subresource."""
    found = call.kind.subresource(call.subresource)
    if found is None:
        return Response(404, b"404 page not found\n", {"content-type": "text/plain"})
    verb = _METHODS.get(call.request.method, "")
    if verb not in found.verbs:
        raise errors.method_not_allowed()
    handler = _VERBS.get((call.kind.plural, call.subresource, verb)) or _STATUS.get(verb)
    if handler is None:
        raise errors.method_not_allowed()
    return handler(call)


def bind(call: Call) -> Response:
    """Give a pod its node."""
    binding = read_body(call)
    record = call.record()
    pod = call.stored(record)
    target = (binding.get("target") or {}).get("name", "")
    meta = binding.get("metadata") or {}
    why = _unbindable(pod, meta.get("uid", ""))
    if why:
        raise errors.conflict(_Binding(), call.name, why)
    spec, status = pod["spec"], pod.setdefault("status", {})
    spec["nodeName"] = target
    for key in ("labels", "annotations"):
        if meta.get(key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **meta[key]}
    _set_condition(status, {"type": "PodScheduled", "status": "True"}, call.now)
    writes.commit(call, pod, record)
    return Response(201, _SUCCESS, JSON_HEADERS)


class _Binding:
    group = ""
    kind = "Binding"
    plural = "pods/binding"


def _unbindable(pod: Object, uid: str) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    if uid and uid != meta["uid"]:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
    if "deletionTimestamp" in meta:
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


def _set_condition(status: Object, condition: Object, now: str) -> None:
    conditions = [dict(c) for c in status.get("conditions") or []]
    for present in conditions:
        if present["type"] == condition["type"]:
            if present.get("status") != condition["status"]:
                present["lastTransitionTime"] = now
            for key in ("reason", "message"):
                present.pop(key, None)
            present.update(condition)
            break
    else:
        conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": now})
    status["conditions"] = conditions


def finalize(call: Call) -> Response:
    """Take finalizers off a namespace."""
    sent = read_object(call)
    record = call.record()
    namespace = call.stored(record)
    version = sent["metadata"].get("resourceVersion", "")
    if version not in ("", namespace["metadata"]["resourceVersion"]):
        raise errors.modified(call.kind, call.name)
    finalizers = (sent.get("spec") or {}).get("finalizers") or []
    namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
    if not finalizers:
        del namespace["spec"]["finalizers"]
    return Response(200, call.show(writes.commit(call, namespace, record)), JSON_HEADERS)


_VERBS: Final[dict[tuple[str, str, str], Verb]] = {
    ("pods", "binding", "create"): bind,
    ("namespaces", "finalize", "update"): finalize,
}
_STATUS: Final[dict[str, Verb]] = {
    "get": reads.get,
    "update": writes.update,
    "patch": writes.patch,
}
