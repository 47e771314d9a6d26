"""Deleting: at once, gracefully, or when the last finalizer is gone."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.times import format_time, parse_time
from everynode.cluster import errors
from everynode.cluster.calls import Call, decode_object
from everynode.cluster.forms import form_of
from everynode.cluster.reads import JSON_HEADERS, selection_of
from everynode.cluster.received import Part, read_part
from everynode.cluster.rules import Sketch
from everynode.cluster.store import Record, make_record, ordered_metadata
from everynode.cluster.writes import finished
from everynode.kube.requests import Response

Object = dict[str, Any]

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_METADATA: Final = b'"metadata":'
_PART: Final = Part("", "v1", "DeleteOptions")
_TYPE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


class Options(msgspec.Struct, rename="camel", kw_only=True):
    """How something is to be deleted."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None
    dry_run: list[str] | None = None

    def without_version(self) -> Options:
        """The same for an object that was just changed on purpose."""
        kept = {k: v for k, v in (self.preconditions or {}).items() if k != "resourceVersion"}
        return msgspec.structs.replace(self, preconditions=kept)


def delete(call: Call) -> Response:
    """DELETE of one object."""
    options = read_options(call)
    record = call.record()
    left, gone = delete_object(call, record, options)
    if gone and not call.kind.rules.returns_deleted:
        return Response(200, msgspec.json.encode(_success(call, record)), JSON_HEADERS)
    return Response(200, form_of(call).one(left), JSON_HEADERS)


def delete_collection(call: Call) -> Response:
    """DELETE of all selected objects."""
    options = read_options(call)
    selection = selection_of(call)
    records = [r for r in call.collection.scan(call.namespace) if selection.matches(r)]
    for record in records:
        one = call.about(record)
        delete_object(one, record, options)
    meta = {"resourceVersion": str(call.site.store.version)}
    return Response(200, form_of(call).many(records, meta), JSON_HEADERS)


def read_options(call: Call) -> Options:
    """The options, from the body if there is one, else from the query."""
    sent = read_part(call, _PART, _TYPE) if call.request.body else _from_query(call)
    call.warnings.clear()  # nobody is told of options that are not known
    return to_options(call, sent)


def to_options(call: Call, sent: Object) -> Options:
    """Options as they were sent, checked."""
    try:
        options = msgspec.convert(sent, Options, strict=False)
    except msgspec.ValidationError as error:
        raise errors.bad_request(f"DeleteOptions: {error}") from None
    if call.dry_run:
        options.dry_run = ["All"]
    if options.orphan_dependents is not None and options.propagation_policy is not None:
        raise _fault(
            "propagationPolicy",
            f'Invalid value: "{options.propagation_policy}": '
            "orphanDependents and deletionPropagation cannot be both set",
        )
    if options.propagation_policy not in (None, "Background", "Foreground", "Orphan"):
        raise _fault(
            "propagationPolicy",
            f'Unsupported value: "{options.propagation_policy}": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
        )
    if options.dry_run not in (None, [], ["All"]):
        shown = msgspec.json.encode(options.dry_run).decode()
        raise _fault("dryRun", f'Unsupported value: {shown}: supported values: "All"')
    return options


def _from_query(call: Call) -> Object:
    names = ("gracePeriodSeconds", "propagationPolicy", "orphanDependents")
    return {name: call.query[name] for name in names if name in call.query}


def _fault(path: str, message: str) -> errors.Refusal:
    return errors.bad_option("Delete", path, message)


def delete_object(call: Call, record: Record, options: Options) -> tuple[Record, bool]:
    """Delete one object as far as it can be now: what is or was last of it, and is it gone?"""
    check_preconditions(call, record, options)
    dry = bool(options.dry_run)
    sketch = None if dry else call.kind.rules.sketch(record.body)
    obj = call.stored(record) if sketch is None else _drawn(sketch)
    if why := call.kind.rules.undeletable(obj):
        raise errors.forbidden(call.kind, record.name, why)
    if not _mark(call, obj, options):
        if "deletionTimestamp" in obj["metadata"] and not finished(obj):
            return record, False
        return record if dry else call.site.store.remove(call.collection, record), True
    if dry:
        fields = call.kind.rules.selectable(obj)
        return make_record(obj, record.version, fields=fields), finished(obj)
    marked = _put(call, record, obj, sketch)
    if finished(obj):
        return call.site.store.remove(call.collection, marked), True
    return marked, False


def _drawn(sketch: Sketch) -> Object:
    return {"metadata": decode_object(sketch.metadata), **sketch.rest}


def _put(call: Call, record: Record, obj: Object, sketch: Sketch | None) -> Record:
    """Write an object that was marked; of one that was only sketched, the metadata alone."""
    store = call.site.store
    if sketch is None:
        return store.put(call.collection, obj, fields=call.kind.rules.selectable(obj))
    before = record.body
    start = before.index(_METADATA) + len(_METADATA)  # after kind and version
    meta = msgspec.json.encode(ordered_metadata(obj["metadata"]))
    body = b"%b%b%b" % (before[:start], meta, before[start + len(sketch.metadata) :])
    return store.rewrite(call.collection, record, body, fields=record.fields)


def check_preconditions(call: Call, record: Record, options: Options) -> None:
    """Refuse when the object is not the one that was meant."""
    wanted = options.preconditions or {}
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != record.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({record.uid}). The object might have been deleted and then recreated"
        )
        raise errors.precondition_failed(call.kind, record.name, why)
    if version and version != str(record.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({record.version}). The object might have been modified"
        )
        raise errors.precondition_failed(call.kind, record.name, why)


def _mark(call: Call, obj: Object, options: Options) -> bool:
    """Write into the object what its deletion needs; whether that changed anything."""
    meta = obj["metadata"]
    finalizers = _finalizers(call, meta, options)
    changed = finalizers != (meta.get("finalizers") or [])
    if changed:
        meta["finalizers"] = finalizers
    grace = call.kind.rules.grace(obj, options.grace_period_seconds)
    if "deletionTimestamp" in meta:
        return _shorten(call, meta, options.grace_period_seconds, grace) or changed
    if grace is None:
        if not finalizers and not _lingers(obj):
            return False
        grace = 0
    seconds = call.site.clock.now() + grace
    meta["deletionTimestamp"] = format_time(seconds)
    meta["deletionGracePeriodSeconds"] = grace
    if _lingers(obj):
        del meta["deletionGracePeriodSeconds"]
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if meta.get("generation"):
        meta["generation"] += 1
    return True


def _lingers(obj: Object) -> bool:
    """Namespaces stay until their own finalizers are gone."""
    return obj.get("kind") == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _shorten(call: Call, meta: Object, asked: int | None, grace: int | None) -> bool:
    """Somebody is in more of a hurry than whoever deleted the object first."""
    before = meta.get("deletionGracePeriodSeconds")
    if grace is None or asked is None or before is None or grace >= before:
        return False
    began = parse_time(meta["deletionTimestamp"]) - before
    meta["deletionTimestamp"] = format_time(max(began + grace, call.site.clock.now()))
    meta["deletionGracePeriodSeconds"] = grace
    return True


def _finalizers(call: Call, meta: Object, options: Options) -> list[str]:
    """The object's finalizers, with those that make the garbage collector do what is asked."""
    present = list(meta.get("finalizers") or [])
    policy = options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        return present
    rest = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    wanted = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    if wanted and wanted[0] in present:
        return present
    return rest + wanted


def _success(call: Call, record: Record) -> Object:
    details: Object = {"name": record.name}
    if call.kind.group:
        details["group"] = call.kind.group
    details["kind"] = call.kind.plural
    details["uid"] = record.uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
