"""DELETE: removes an object at once, after its grace period, or after its last finalizer."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.keys import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from everynode.api.times import format_time, parse_time
from everynode.apiserver import errors
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.request.api_request import ApiRequest, decode_object
from everynode.apiserver.request.body import NestedKind, read_subresource_object
from everynode.apiserver.request.strings import NumberError, parse_int
from everynode.apiserver.resources.strategy import PartialObject
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.storage.store import Record, encode_record
from everynode.apiserver.storage.stored_body import with_metadata
from everynode.apiserver.verbs.read import JSON_HEADERS, selection_for
from everynode.apiserver.verbs.write import deletion_complete
from everynode.kube.requests import Response

Object = dict[str, Any]

_DELETE_OPTIONS: Final = NestedKind(
    "", "v1", "DeleteOptions", ObjectType("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
)


class DeleteOptions(msgspec.Struct, rename="camel", kw_only=True):
    """The DeleteOptions of a request."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None
    dry_run: list[str] | None = None

    def without_version_precondition(self) -> DeleteOptions:
        """Return the options without resourceVersion: an eviction writes the pod before."""
        kept = {k: v for k, v in (self.preconditions or {}).items() if k != "resourceVersion"}
        return msgspec.structs.replace(self, preconditions=kept)


def delete(request: ApiRequest) -> Response:
    """DELETE of one object."""
    options = read_options(request)
    record = request.record()
    left, gone = delete_object(request, record, options)
    if gone and not request.kind.strategy.returns_deleted_object:
        return Response(200, msgspec.json.encode(_success_status(request, record)), JSON_HEADERS)
    return Response(200, representation_for(request).one(left), JSON_HEADERS)


def delete_collection(request: ApiRequest) -> Response:
    """DELETE of all selected objects."""
    options = read_options(request)
    selection = selection_for(request)
    records = [r for r in request.collection.scan(request.namespace) if selection.matches(r)]
    for record in records:
        one = request.for_object(record)
        delete_object(one, record, options)
    meta = {"resourceVersion": str(request.state.store.version)}
    return Response(200, representation_for(request).many(records, meta), JSON_HEADERS)


def read_options(request: ApiRequest) -> DeleteOptions:
    """Return the DeleteOptions of the body if there is one, else of the query."""
    sent = (
        read_subresource_object(request, _DELETE_OPTIONS)
        if request.http.body
        else _options_from_query(request)
    )
    request.warnings.clear()  # kube-apiserver does not warn of unknown fields in DeleteOptions
    return validate_options(request, sent)


def validate_options(request: ApiRequest, sent: Object) -> DeleteOptions:
    """Convert and validate DeleteOptions."""
    try:
        options = msgspec.convert(sent, DeleteOptions, strict=False)
    except msgspec.ValidationError as error:
        raise errors.bad_request(f"DeleteOptions: {error}") from None
    if request.dry_run:
        options.dry_run = ["All"]
    if options.orphan_dependents is not None and options.propagation_policy is not None:
        raise _invalid_delete_option(
            "propagationPolicy",
            f'Invalid value: "{options.propagation_policy}": '
            "orphanDependents and deletionPropagation cannot be both set",
        )
    if options.propagation_policy not in (None, "Background", "Foreground", "Orphan"):
        raise _invalid_delete_option(
            "propagationPolicy",
            f'Unsupported value: "{options.propagation_policy}": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
        )
    if options.dry_run not in (None, [], ["All"]):
        shown = msgspec.json.encode(options.dry_run).decode()
        raise _invalid_delete_option(
            "dryRun", f'Unsupported value: {shown}: supported values: "All"'
        )
    return options


def _options_from_query(request: ApiRequest) -> Object:
    sent: Object = {}
    if "gracePeriodSeconds" in request.query:
        try:
            sent["gracePeriodSeconds"] = parse_int(request.query["gracePeriodSeconds"])
        except NumberError as error:
            raise errors.bad_request(str(error)) from None
    if "propagationPolicy" in request.query:
        sent["propagationPolicy"] = request.query["propagationPolicy"]
    if "orphanDependents" in request.query:
        sent["orphanDependents"] = request.flag("orphanDependents")
    return sent


def _invalid_delete_option(path: str, message: str) -> errors.StatusError:
    return errors.invalid_option("Delete", path, message)


def delete_object(
    request: ApiRequest, record: Record, options: DeleteOptions
) -> tuple[Record, bool]:
    """Delete an object or mark it as terminating; return its last state, and whether it is gone.

    Kinds whose strategy can decode an object partially (pods) have only their metadata decoded and
    encoded again; this is a measured fast path.
    """
    check_preconditions(request, record, options)
    dry = bool(options.dry_run)
    partial_object = None if dry else request.kind.strategy.partial_object(record.body)
    obj = request.stored(record) if partial_object is None else _partly_decoded(partial_object)
    if why := request.kind.strategy.deletion_forbidden(obj):
        raise errors.forbidden(request.kind, record.name, why)
    if not _mark_terminating(request, obj, options):
        if "deletionTimestamp" in obj["metadata"] and not deletion_complete(obj):
            return record, False
        return record if dry else request.state.store.remove(request.collection, record), True
    if dry:
        fields = request.kind.strategy.selectable(obj)
        return encode_record(obj, record.version, fields=fields), deletion_complete(obj)
    marked = _store_marked(request, record, obj, partial_object)
    if deletion_complete(obj):
        return request.state.store.remove(request.collection, marked), True
    return marked, False


def _partly_decoded(partial_object: PartialObject) -> Object:
    return {"metadata": decode_object(partial_object.metadata), **partial_object.rest}


def _store_marked(
    request: ApiRequest, record: Record, obj: Object, partial_object: PartialObject | None
) -> Record:
    """Store a terminating object; of a partially decoded one, replace the metadata alone."""
    store = request.state.store
    if partial_object is None:
        return store.put(request.collection, obj, fields=request.kind.strategy.selectable(obj))
    body = with_metadata(record.body, obj["metadata"], old_length=len(partial_object.metadata))
    return store.replace_body(request.collection, record, body, fields=record.fields)


def check_preconditions(request: ApiRequest, record: Record, options: DeleteOptions) -> None:
    """Raise 409 if the object's uid or resourceVersion is not the one of the preconditions."""
    wanted = options.preconditions or {}
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != record.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({record.uid}). The object might have been deleted and then recreated"
        )
        raise errors.precondition_failed(request.kind, record.name, why)
    if version is not None and version != str(record.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({record.version}). The object might have been modified"
        )
        raise errors.precondition_failed(request.kind, record.name, why)


def _mark_terminating(request: ApiRequest, obj: Object, options: DeleteOptions) -> bool:
    """Set deletionTimestamp, grace period and finalizers; return whether anything changed."""
    meta = obj["metadata"]
    finalizers = _with_propagation_finalizers(request, meta, options)
    changed = finalizers != (meta.get("finalizers") or [])
    if changed:
        meta["finalizers"] = finalizers
    grace = request.kind.strategy.grace(obj, options.grace_period_seconds)
    if "deletionTimestamp" in meta:
        return _shorten_grace_period(request, meta, options.grace_period_seconds, grace) or changed
    if grace is None:
        if not finalizers and not _has_namespace_finalizers(obj):
            return False
        grace = 0
    seconds = request.state.clock.now() + _as_go_duration(grace)
    meta["deletionTimestamp"] = format_time(seconds)
    meta["deletionGracePeriodSeconds"] = grace
    if _has_namespace_finalizers(obj):
        del meta["deletionGracePeriodSeconds"]
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if meta.get("generation"):
        meta["generation"] += 1
    return True


def _as_go_duration(seconds: int) -> float:
    """Return seconds as a Go duration holds them: 64-bit nanoseconds, which wrap around."""
    half = 1 << 63
    return ((seconds * 1_000_000_000 + half) % (1 << 64) - half) / 1e9


def _has_namespace_finalizers(obj: Object) -> bool:
    """Whether this is a namespace that still has spec.finalizers."""
    return obj.get("kind") == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _shorten_grace_period(
    request: ApiRequest, meta: Object, requested: int | None, grace: int | None
) -> bool:
    """Apply a DELETE with a shorter grace period to an object that is already terminating."""
    before = meta.get("deletionGracePeriodSeconds")
    if grace is None or requested is None or before is None or grace >= before:
        return False
    began = parse_time(meta["deletionTimestamp"]) - _as_go_duration(before)
    meta["deletionTimestamp"] = format_time(
        max(began + _as_go_duration(grace), request.state.clock.now())
    )
    meta["deletionGracePeriodSeconds"] = grace
    return True


def _with_propagation_finalizers(
    request: ApiRequest, meta: Object, options: DeleteOptions
) -> list[str]:
    """Return the finalizers with the one that the propagation policy needs.

    The garbage collector acts on `foregroundDeletion` and `orphan`.
    """
    present = list(meta.get("finalizers") or [])
    policy = options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        return present
    rest = [name for name in present if name not in (FOREGROUND_DELETION, ORPHAN_DEPENDENTS)]
    wanted = {"Foreground": [FOREGROUND_DELETION], "Orphan": [ORPHAN_DEPENDENTS]}.get(policy, [])
    if wanted and wanted[0] in present:
        return present
    return rest + wanted


def _success_status(request: ApiRequest, record: Record) -> Object:
    details: Object = {"name": record.name}
    if request.kind.group:
        details["group"] = request.kind.group
    details["kind"] = request.kind.plural
    details["uid"] = record.uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
