"""POST, PUT and PATCH: create, replace and patch objects, with the rules common to all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import at_least_zero
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.apiserver import errors
from everynode.apiserver.apply import managed_fields
from everynode.apiserver.errors import bad_request
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.body import media_type_of, read_object
from everynode.apiserver.request.strings import NumberError, parse_uint
from everynode.apiserver.storage.store import Record, encode_record
from everynode.apiserver.verbs.patch import (
    check_field_manager,
    check_patch_options,
    is_apply,
    object_after_patch,
    server_side_apply,
)
from everynode.apiserver.verbs.read import JSON_HEADERS
from everynode.apiserver.verbs.status_patch import try_fast_status_patch
from everynode.kube.requests import STRATEGIC_PATCH, Response

Object = dict[str, Any]

_SUFFIX_LENGTH: Final = 5  # characters that generateName adds
_MAX_BASE_LENGTH: Final = 63 - _SUFFIX_LENGTH
_ATTEMPTS: Final = 8
_SET_BY_SERVER: Final = (
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_IMMUTABLE_METADATA: Final = (
    "selfLink",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class _NamespaceResource:
    group = ""
    kind = "Namespace"
    plural = "namespaces"


class _KindNamedByPlural:
    """A resource whose kind is given as its plural, as some errors of kube-apiserver do."""

    def __init__(self, kind: errors.ResourceInfo) -> None:
        self.group = kind.group
        self.kind = self.plural = kind.plural


def create(request: ApiRequest) -> Response:
    """POST to a collection."""
    check_field_manager(request, "Create")
    return create_object(request, read_object(request))


def create_object(request: ApiRequest, obj: Object) -> Response:
    """Default, admit, validate and store a new object.

    Objects that its kind needs (the default ServiceAccount of a namespace) are created afterwards.
    """
    _check_namespace(request, obj["metadata"])
    if _is_nonzero_version(obj["metadata"].get("resourceVersion", "")) and not request.dry_run:
        message = "resourceVersion should not be set on objects to be created"
        raise errors.StatusError(500, "", message)
    strategy = request.kind.strategy
    obj = strategy.default(_with_server_fields(request, obj))
    strategy.prepare_create(obj, request)
    obj = _with_managed_fields(request, None, obj)
    strategy.admit(obj, request)
    meta = obj["metadata"]
    faults = [*_metadata_faults(request, meta), *strategy.validate_create(obj, request)]
    if faults:
        raise errors.invalid(request.kind, meta["name"], faults)
    taken = request.collection.get(request.namespace, meta["name"])
    if taken is not None:
        deleting = "deletionTimestamp" in request.stored(taken)["metadata"]
        raise errors.already_exists(request.kind, taken.name, deleting=deleting)
    answer = _respond(request, commit(request, obj, None), 201)
    if not request.dry_run:
        for plural, namespace, companion in strategy.created_with(obj, request):
            create_object(request.for_core_kind(plural, namespace=namespace), companion)
    return answer


def _metadata_faults(request: ApiRequest, meta: Object) -> Iterator[FieldError]:
    kind = request.kind
    yield from check_metadata(
        meta, name_rule=kind.strategy.name_rule, namespaced=kind.namespaced, custom=kind.custom
    )
    yield from at_least_zero("metadata.generation", meta.get("generation"))


def _with_server_fields(request: ApiRequest, obj: Object) -> Object:
    """Return the object in its stored version with the metadata that the server sets."""
    if request.kind.conversion is not None:
        obj = request.kind.conversion.store(obj)
    meta = obj["metadata"]
    for key in _SET_BY_SERVER:
        meta.pop(key, None)
    if request.kind.strategy.generation:
        meta.pop("generation", None)
    if request.kind.namespaced:
        meta["namespace"] = request.namespace
    else:
        meta.pop("namespace", None)
    _choose_name(request, meta)
    meta["uid"] = request.state.clock.uid()
    meta["creationTimestamp"] = request.now
    obj.setdefault("kind", request.kind.kind)
    obj.setdefault("apiVersion", request.kind.api_version)
    return obj


def update(request: ApiRequest) -> Response:
    """PUT of an object or a subresource."""
    check_field_manager(request, "Update")
    obj = read_object(request)
    meta = obj["metadata"]
    check_name_and_namespace(request, meta)
    record = request.collection.get(request.namespace, request.name)
    if record is None:
        if request.kind.strategy.create_on_update and not request.subresource:
            return create_object(request, obj)
        raise errors.not_found(request.kind, request.name)
    if not resource_version_of(meta) and not request.kind.strategy.unconditional_update:
        why = "Invalid value: 0: must be specified for an update"
        raise errors.invalid(
            _KindNamedByPlural(request.kind),
            request.name,
            [FieldError("metadata.resourceVersion", why)],
        )
    check_uid(request.kind, meta, record)
    if request.kind.conversion is not None:
        obj = request.kind.conversion.store(obj)
    return _respond(request, replace_object(request, obj, record))


def check_name_and_namespace(request: ApiRequest, meta: Object) -> None:
    """Require that name and namespace of an object are those of the path."""
    if not meta.get("name"):
        raise bad_request(
            f"the name of the object ({request.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if meta["name"] != request.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({request.name})"
        )
    _check_same_namespace(request, meta)


def check_uid(kind: errors.ResourceInfo, meta: Object, record: Record) -> None:
    """Raise 409 if the body has a uid and it is not the stored object's."""
    uid = meta.get("uid", "")
    if uid not in ("", record.uid):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
        raise errors.conflict(kind, record.name, why)


def resource_version_of(meta: Object) -> int:
    """Return the resourceVersion that a write expects; 0 for any."""
    try:
        return parse_uint(meta.get("resourceVersion") or "0")
    except NumberError as error:
        raise errors.StatusError(500, "", str(error)) from None


def _is_nonzero_version(version: str) -> bool:
    try:
        return parse_uint(version or "0") != 0
    except NumberError:
        return False


def patch(request: ApiRequest) -> Response:
    """PATCH of an object or a subresource; a server-side apply may create the object."""
    conversion = request.kind.conversion
    record = request.collection.get(request.namespace, request.name)
    if record is None:
        check_patch_options(request)
        if not is_apply(request) or request.subresource:
            raise errors.not_found(request.kind, request.name)
        return create_object(request, server_side_apply(request, None))
    written = try_fast_status_patch(request, record)
    if written is not None:
        return _respond(request, written)
    stored = request.stored(record)
    obj = object_after_patch(request, conversion.show(stored) if conversion else stored)
    uid = obj["metadata"].get("uid", "")
    if uid not in ("", record.uid):
        fault = FieldError("metadata.uid", f'Invalid value: "{uid}": field is immutable')
        raise errors.invalid(request.kind, request.name, [fault])
    if conversion is not None:
        obj = conversion.store(obj)
    if _writes_every_field(request, stored, obj):
        obj = request.kind.strategy.after_patch(obj)
    # A status patch leaves the spec untouched, so the decoded object can serve as the old one;
    # after other patches both may share parts, so the old one is decoded again.
    alone = request.subresource == "status" and conversion is None
    return _respond(request, replace_object(request, obj, record, stored if alone else None))


def _writes_every_field(request: ApiRequest, before: Object, after: Object) -> bool:
    """Whether the patch writes fields again that it does not name.

    A strategic merge patch does, and a server-side apply that changes more than managedFields.
    """
    if is_apply(request):
        drop = managed_fields.drop_managed_fields
        return drop(before) != drop(after)
    return media_type_of(request.http.content_type) == STRATEGIC_PATCH


def replace_object(
    request: ApiRequest, new: Object, record: Record, old: Object | None = None
) -> Record:
    """Default, validate and store a changed object in the place of a stored one."""
    old = request.stored(record) if old is None else old
    meta, old_meta = new["metadata"], old["metadata"]
    if resource_version_of(meta) not in (0, int(old_meta["resourceVersion"])):
        raise errors.stale_resource_version(request.kind, request.name)
    for key in _IMMUTABLE_METADATA:
        _restore_metadata(meta, old_meta, key)
    meta["name"], meta["resourceVersion"] = record.name, old_meta["resourceVersion"]
    if record.namespace:
        meta["namespace"] = record.namespace
    strategy = request.kind.strategy
    new = strategy.default_status(new) if request.subresource == "status" else strategy.default(new)
    new, faults = _run_update_rules(request, new, old)
    if old["metadata"] != new["metadata"]:  # stored metadata was validated before
        custom = request.kind.custom
        faults = [*check_metadata_update(old["metadata"], new["metadata"], custom=custom), *faults]
    if faults:
        raise errors.invalid(request.kind, request.name, faults)
    new = _with_managed_fields(request, old, new)
    return record if new == old else commit(request, new, record)


def _run_update_rules(
    request: ApiRequest, new: Object, old: Object
) -> tuple[Object, list[FieldError]]:
    strategy = request.kind.strategy
    if request.subresource == "status":
        strategy.prepare_status(new, old, request)
        return new, strategy.validate_status(new, old)
    if request.subresource:
        return new, strategy.prepare_subresource(request.subresource, new, old, request)
    strategy.prepare_update(new, old, request)
    return new, strategy.validate_update(new, old, request)


def _with_managed_fields(request: ApiRequest, old: Object | None, new: Object) -> Object:
    """Return the object with managedFields updated; a server-side apply has done that already."""
    if request.http.method == "PATCH" and is_apply(request):
        return new
    if not request.tracks_fields:
        if old is not None and "managedFields" not in new["metadata"]:
            _restore_metadata(new["metadata"], old["metadata"], "managedFields")
        return new
    return managed_fields.track_update(old, new, request.kind.object_type, request.writer)


def commit(request: ApiRequest, obj: Object, previous: Record | None) -> Record:
    """Store a validated object, or remove it if this write completed its deletion."""
    fields = request.kind.strategy.selectable(obj)
    if request.dry_run:
        return encode_record(obj, previous.version if previous else None, fields=fields)
    if previous is not None and deletion_complete(obj):
        request.state.store.remove(request.collection, previous)
        return encode_record(obj, previous.version, fields=fields)
    return request.state.store.put(request.collection, obj, fields=fields)


def deletion_complete(obj: Object) -> bool:
    """Whether a terminating object has no finalizer and no grace period left."""
    meta = obj["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


def _respond(request: ApiRequest, record: Record, status: int = 200) -> Response:
    return Response(status, representation_for(request).one(record), JSON_HEADERS)


def _restore_metadata(meta: Object, old: Object, key: str) -> None:
    if key in old:
        meta[key] = old[key]
    else:
        meta.pop(key, None)


def _check_same_namespace(request: ApiRequest, meta: Object) -> None:
    if meta.get("namespace") and request.namespace and meta["namespace"] != request.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_namespace(request: ApiRequest, meta: Object) -> None:
    """Require that the namespace of a new object exists and is not terminating."""
    _check_same_namespace(request, meta)
    if not request.kind.namespaced:
        return
    namespace = request.state.store.collection("namespaces").get("", request.namespace)
    if namespace is None:
        raise errors.not_found(_NamespaceResource(), request.namespace)
    if namespace.fields[0] == "Terminating":
        why = (
            f"unable to create new content in namespace {request.namespace} "
            "because it is being terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {request.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise errors.forbidden(request.kind, meta.get("name", ""), why, causes=[cause])


def _choose_name(request: ApiRequest, meta: Object) -> None:
    base = meta.get("generateName", "")
    if meta.get("name"):
        return
    if not base:
        meta["name"] = ""  # validation reports it with all other errors
        return
    for _ in range(_ATTEMPTS):
        name = base[:_MAX_BASE_LENGTH] + request.state.clock.name_suffix(_SUFFIX_LENGTH)
        if request.collection.get(request.namespace, name) is None:
            meta["name"] = name
            return
    raise errors.generate_name_conflict(request.kind, base)
