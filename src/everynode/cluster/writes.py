"""Writing: create, replace and patch, with the rules that hold for every kind."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.daemonset import Fault
from everynode.cluster import errors
from everynode.cluster.bodies import read_object
from everynode.cluster.calls import Call
from everynode.cluster.errors import bad_request
from everynode.cluster.patching import patched
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.store import Record, make_record
from everynode.kube.requests import Response

Object = dict[str, Any]

_GENERATED: Final = 5  # characters that generateName adds
_LONGEST_BASE: Final = 63 - _GENERATED
_ATTEMPTS: Final = 8
_KEPT_META: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


def create(call: Call) -> Response:
    """POST to a collection."""
    obj = read_object(call)
    return create_object(call, obj)


def create_object(call: Call, obj: Object, *, status: int = 201) -> Response:
    """Store a new object, in the form in which it was sent."""
    meta = obj["metadata"]
    _check_namespace(call, meta)
    if call.kind.view is not None:
        obj = call.kind.view.store(obj)
        meta = obj["metadata"]
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(key, None)
    if call.kind.namespaced:
        meta["namespace"] = call.namespace
    else:
        meta.pop("namespace", None)
    _choose_name(call, meta)
    meta["uid"] = call.site.clock.uid()
    meta["creationTimestamp"] = call.now
    rules = call.kind.rules
    obj = rules.default(obj)
    rules.prepare_create(obj, call)
    faults = rules.create_faults(obj, call)
    if faults:
        raise errors.invalid(call.kind, obj["metadata"].get("name", ""), faults)
    record = call.collection.get(call.namespace, obj["metadata"]["name"])
    if record is not None:
        deleting = "deletionTimestamp" in call.stored(record)["metadata"]
        raise errors.already_exists(call.kind, record.name, deleting=deleting)
    answer = _answer(call, commit(call, obj, None), status)
    if not call.dry_run:
        for plural, namespace, companion in rules.companions(obj):
            create_object(call.elsewhere(plural, namespace=namespace), companion)
    return answer


def update(call: Call) -> Response:
    """PUT of an object or of its status."""
    obj = read_object(call)
    meta = obj["metadata"]
    if meta.get("name") and meta["name"] != call.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({call.name})"
        )
    meta["name"] = call.name
    _check_same_namespace(call, meta)
    record = call.collection.get(call.namespace, call.name)
    if record is None:
        if call.kind.rules.create_on_update and not call.subresource:
            return create_object(call, obj)
        raise errors.not_found(call.kind, call.name)
    if not meta.get("resourceVersion") and not call.kind.rules.unconditional_update:
        fault = Fault(
            "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        raise errors.invalid(call.kind, call.name, [fault])
    if call.kind.view is not None:
        obj = call.kind.view.store(obj)
    return _answer(call, replace(call, obj, record))


def patch(call: Call) -> Response:
    """PATCH of an object or of its status."""
    record = call.record()
    stored = call.stored(record)
    view = call.kind.view
    obj = patched(call, view.show(stored) if view else stored)
    if view is not None:
        obj = view.store(obj)
    return _answer(call, replace(call, obj, record))


def replace(call: Call, new: Object, record: Record) -> Record:
    """Put a changed object in the place of a stored one, within the rules of its kind."""
    old = call.stored(record)
    meta, old_meta = new["metadata"], old["metadata"]
    if meta.get("resourceVersion", "") not in ("", old_meta["resourceVersion"]):
        raise errors.modified(call.kind, call.name)
    if meta.get("uid", "") not in ("", record.uid):
        why = (
            f"Precondition failed: UID in precondition: {meta['uid']}, "
            f"UID in object meta: {record.uid}"
        )
        raise errors.conflict(call.kind, call.name, why)
    for key in _KEPT_META:
        _keep_meta(meta, old_meta, key)
    meta["name"], meta["resourceVersion"] = record.name, old_meta["resourceVersion"]
    if record.namespace:
        meta["namespace"] = record.namespace
    rules = call.kind.rules
    new = rules.default(new)
    if call.subresource == "status":
        rules.prepare_status(new, old, call)
        faults = rules.status_faults(new, old)
    elif call.subresource:
        faults = rules.change_part(call.subresource, new, old, call)
    else:
        rules.prepare_update(new, old, call)
        faults = rules.update_faults(new, old, call)
    if faults:
        raise errors.invalid(call.kind, call.name, faults)
    if new == old:
        return record
    return commit(call, new, record)


def commit(call: Call, obj: Object, previous: Record | None) -> Record:
    """Store what has passed all rules; what was only waiting to end, ends."""
    fields = call.kind.rules.selectable(obj)
    if call.dry_run:
        if previous is not None:
            return make_record(obj, previous.version, fields=fields)
        return make_record(obj, 0, fields=fields)
    if previous is not None and finished(obj):
        call.site.store.remove(call.collection, previous)
        return previous
    return call.site.store.put(call.collection, obj, fields=fields)


def finished(obj: Object) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    meta = obj["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


def _answer(call: Call, record: Record, status: int = 200) -> Response:
    return Response(status, call.show(record), JSON_HEADERS)


def _keep_meta(meta: Object, old: Object, key: str) -> None:
    if key in old:
        meta[key] = old[key]
    else:
        meta.pop(key, None)


def _check_same_namespace(call: Call, meta: Object) -> None:
    if meta.get("namespace") and call.namespace and meta["namespace"] != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_namespace(call: Call, meta: Object) -> None:
    """New objects need a namespace that is there and stays."""
    _check_same_namespace(call, meta)
    if not call.kind.namespaced:
        return
    namespace = call.site.store.collection("namespaces").get("", call.namespace)
    if namespace is None:
        raise errors.not_found(_NAMESPACES, call.namespace)
    if namespace.fields[0] == "Terminating":
        why = (
            f"unable to create new content in namespace {call.namespace} "
            "because it is being terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {call.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise errors.forbidden(call.kind, meta.get("name", ""), why, causes=[cause])


class _Namespaces:
    group = ""
    kind = "Namespace"
    plural = "namespaces"


_NAMESPACES: Final = _Namespaces()


def _choose_name(call: Call, meta: Object) -> None:
    base = meta.get("generateName", "")
    if meta.get("name"):
        return
    if not base:
        fault = Fault("metadata.name", "Required value: name or generateName is required")
        raise errors.invalid(call.kind, "", [fault])
    for _ in range(_ATTEMPTS):
        name = base[:_LONGEST_BASE] + call.site.clock.name_suffix(_GENERATED)
        if call.collection.get(call.namespace, name) is None:
            meta["name"] = name
            return
    raise errors.no_free_name(call.kind, base)
