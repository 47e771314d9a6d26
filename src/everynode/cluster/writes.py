"""Writing: create, replace and patch, with the rules that hold for every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from everynode.api.daemonset import Fault
from everynode.api.validation.faults import at_least_zero
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.cluster import errors, managed_fields
from everynode.cluster.calls import Call
from everynode.cluster.errors import bad_request
from everynode.cluster.forms import form_of
from everynode.cluster.gotext import quote
from everynode.cluster.patching import applied, check_options, is_apply, patched
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.received import read_object
from everynode.cluster.statuses import patch_alone
from everynode.cluster.store import Record, make_record
from everynode.kube.requests import Response

Object = dict[str, Any]

_GENERATED: Final = 5  # characters that generateName adds
_LONGEST_BASE: Final = 63 - _GENERATED
_ATTEMPTS: Final = 8
_SERVERS: Final = ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT_META: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class _Namespaces:
    group = ""
    kind = "Namespace"
    plural = "namespaces"


class _Plurals:
    """A kind under the name of its resource, as some errors have it."""

    def __init__(self, kind: errors.Named) -> None:
        self.group = kind.group
        self.kind = self.plural = kind.plural


def create(call: Call) -> Response:
    """POST to a collection."""
    return create_object(call, read_object(call))


def create_object(call: Call, obj: Object) -> Response:
    """Store a new object, in the form in which it was sent."""
    _check_namespace(call, obj["metadata"])
    if _is_set(obj["metadata"].get("resourceVersion", "")) and not call.dry_run:
        message = "resourceVersion should not be set on objects to be created"
        raise errors.Refusal(500, "", message)
    rules = call.kind.rules
    obj = rules.default(_first_form(call, obj))
    rules.prepare_create(obj, call)
    obj = _tracked(call, None, obj)
    rules.admit(obj, call)
    meta = obj["metadata"]
    faults = [*_metadata_faults(call, meta), *rules.create_faults(obj, call)]
    if faults:
        raise errors.invalid(call.kind, meta["name"], faults)
    taken = call.collection.get(call.namespace, meta["name"])
    if taken is not None:
        deleting = "deletionTimestamp" in call.stored(taken)["metadata"]
        raise errors.already_exists(call.kind, taken.name, deleting=deleting)
    answer = _answer(call, commit(call, obj, None), 201)
    if not call.dry_run:
        for plural, namespace, companion in rules.companions(obj, call):
            create_object(call.elsewhere(plural, namespace=namespace), companion)
    return answer


def _metadata_faults(call: Call, meta: Object) -> Iterator[Fault]:
    kind = call.kind
    yield from check_metadata(
        meta, name_rule=kind.rules.name_rule, namespaced=kind.namespaced, custom=kind.custom
    )
    yield from at_least_zero("metadata.generation", meta.get("generation"))


def _first_form(call: Call, obj: Object) -> Object:
    """The object as it is stored, with all that the server alone can give."""
    if call.kind.view is not None:
        obj = call.kind.view.store(obj)
    meta = obj["metadata"]
    for key in _SERVERS:
        meta.pop(key, None)
    if call.kind.rules.generation:
        meta.pop("generation", None)
    if call.kind.namespaced:
        meta["namespace"] = call.namespace
    else:
        meta.pop("namespace", None)
    _choose_name(call, meta)
    meta["uid"] = call.site.clock.uid()
    meta["creationTimestamp"] = call.now
    obj.setdefault("kind", call.kind.kind)
    obj.setdefault("apiVersion", call.kind.api_version)
    return obj


def update(call: Call) -> Response:
    """PUT of an object or of a part of it."""
    obj = read_object(call)
    meta = obj["metadata"]
    check_address(call, meta)
    record = call.collection.get(call.namespace, call.name)
    if record is None:
        if call.kind.rules.create_on_update and not call.subresource:
            return create_object(call, obj)
        raise errors.not_found(call.kind, call.name)
    if not version_of(meta) and not call.kind.rules.unconditional_update:
        why = "Invalid value: 0: must be specified for an update"
        raise errors.invalid(
            _Plurals(call.kind), call.name, [Fault("metadata.resourceVersion", why)]
        )
    check_uid(call.kind, meta, record)
    if call.kind.view is not None:
        obj = call.kind.view.store(obj)
    return _answer(call, replace(call, obj, record))


def check_address(call: Call, meta: Object) -> None:
    """An object must be sent to where it belongs."""
    if not meta.get("name"):
        raise bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if meta["name"] != call.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({call.name})"
        )
    _check_same_namespace(call, meta)


def check_uid(kind: errors.Named, meta: Object, record: Record) -> None:
    """Whoever names a uid means that object, and none that has come in its place."""
    uid = meta.get("uid", "")
    if uid not in ("", record.uid):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
        raise errors.conflict(kind, record.name, why)


def version_of(meta: Object) -> int:
    """The version that a write is meant for, 0 for any."""
    text = meta.get("resourceVersion", "")
    if text and not (text.isascii() and text.isdigit()):
        why = f"strconv.ParseUint: parsing {quote(text)}: invalid syntax"
        raise errors.Refusal(500, "", why)
    return int(text or 0)


def _is_set(version: str) -> bool:
    return version.isascii() and version.isdigit() and int(version) != 0


def patch(call: Call) -> Response:
    """PATCH of an object or of a part of it; an apply also creates."""
    view = call.kind.view
    record = call.collection.get(call.namespace, call.name)
    if record is None:
        check_options(call)
        if not is_apply(call) or call.subresource:
            raise errors.not_found(call.kind, call.name)
        return create_object(call, applied(call, None))
    written = patch_alone(call, record)
    if written is not None:
        return _answer(call, written)
    stored = call.stored(record)
    obj = patched(call, view.show(stored) if view else stored)
    uid = obj["metadata"].get("uid", "")
    if uid not in ("", record.uid):
        fault = Fault("metadata.uid", f'Invalid value: "{uid}": field is immutable')
        raise errors.invalid(call.kind, call.name, [fault])
    if view is not None:
        obj = view.store(obj)
    obj = call.kind.rules.after_patch(obj)
    # A status is written beside a spec that stays the very same; otherwise nothing is shared.
    alone = call.subresource == "status" and view is None
    return _answer(call, replace(call, obj, record, stored if alone else None))


def replace(call: Call, new: Object, record: Record, old: Object | None = None) -> Record:
    """Put a changed object in the place of a stored one, within the rules of its kind."""
    old = call.stored(record) if old is None else old
    meta, old_meta = new["metadata"], old["metadata"]
    if version_of(meta) not in (0, int(old_meta["resourceVersion"])):
        raise errors.modified(call.kind, call.name)
    for key in _KEPT_META:
        _keep_meta(meta, old_meta, key)
    meta["name"], meta["resourceVersion"] = record.name, old_meta["resourceVersion"]
    if record.namespace:
        meta["namespace"] = record.namespace
    rules = call.kind.rules
    new = rules.default_status(new) if call.subresource == "status" else rules.default(new)
    new, faults = _within_rules(call, new, old)
    if old["metadata"] != new["metadata"]:  # what is stored was looked at when it was
        custom = call.kind.custom
        faults = [*check_metadata_update(old["metadata"], new["metadata"], custom=custom), *faults]
    if faults:
        raise errors.invalid(call.kind, call.name, faults)
    new = _tracked(call, old, new)
    return record if new == old else commit(call, new, record)


def _within_rules(call: Call, new: Object, old: Object) -> tuple[Object, list[Fault]]:
    rules = call.kind.rules
    if call.subresource == "status":
        rules.prepare_status(new, old, call)
        return new, rules.status_faults(new, old)
    if call.subresource:
        return new, rules.change_part(call.subresource, new, old, call)
    rules.prepare_update(new, old, call)
    return new, rules.update_faults(new, old, call)


def _tracked(call: Call, old: Object | None, new: Object) -> Object:
    """The object with the fields' owners noted; an apply has noted them already."""
    if call.request.method == "PATCH" and is_apply(call):
        return new
    if not call.tracked:
        if old is not None and "managedFields" not in new["metadata"]:
            _keep_meta(new["metadata"], old["metadata"], "managedFields")
        return new
    return managed_fields.track(
        old,
        new,
        manager=call.manager,
        api_version=call.kind.api_version,
        subresource=call.subresource,
        time=call.now,
        type_name=call.kind.type_name,
        schema=call.kind.schema,
    )


def commit(call: Call, obj: Object, previous: Record | None) -> Record:
    """Store what has passed all rules; what was only waiting to end, ends."""
    fields = call.kind.rules.selectable(obj)
    if call.dry_run:
        return make_record(obj, previous.version if previous else None, fields=fields)
    if previous is not None and finished(obj):
        call.site.store.remove(call.collection, previous)
        return make_record(obj, previous.version, fields=fields)
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
    return Response(status, form_of(call).one(record), JSON_HEADERS)


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
        raise errors.not_found(_Namespaces(), call.namespace)
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


def _choose_name(call: Call, meta: Object) -> None:
    base = meta.get("generateName", "")
    if meta.get("name"):
        return
    if not base:
        meta["name"] = ""  # named as a fault with all others
        return
    for _ in range(_ATTEMPTS):
        name = base[:_LONGEST_BASE] + call.site.clock.name_suffix(_GENERATED)
        if call.collection.get(call.namespace, name) is None:
            meta["name"] = name
            return
    raise errors.no_free_name(call.kind, base)
