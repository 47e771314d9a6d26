"""How many pods a workload wants, read and written at an address of its own."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from everynode.api.types import type_for
from everynode.api.validation.faults import at_least_zero
from everynode.cluster import errors, scalers, writes
from everynode.cluster.calls import Call, Place
from everynode.cluster.forms import form_of
from everynode.cluster.kinds import STATUS_VERBS, Kind, Subresource
from everynode.cluster.patching import is_apply, patched
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.received import read_object
from everynode.cluster.store import Record, make_record
from everynode.cluster.table.cells import selector_text
from everynode.kube.requests import Response

Object = dict[str, Any]

PART: Final = Subresource("scale", "Scale", STATUS_VERBS, group="autoscaling", version="v1")
_META: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def get(call: Call) -> Response:
    """The scale of a workload."""
    return _answer(call, call.record())


def update(call: Call) -> Response:
    """PUT of a scale."""
    asked = _of_scales(call)
    scale = read_object(asked)
    call.warnings.extend(asked.warnings)
    writes.check_address(call, scale["metadata"])
    return _change(call, call.record(), scale)


def patch(call: Call) -> Response:
    """PATCH of a scale; whoever applies one comes to own the number."""
    record, asked = call.record(), _of_scales(call)
    workload = call.stored(record)
    scale = _scale(workload)
    scale = patched(asked, scalers.show(workload, scale) if is_apply(call) else scale)
    call.warnings.extend(asked.warnings)
    writes.check_address(call, scale["metadata"])
    return _change(call, record, scale)


def _change(call: Call, record: Record, scale: Object) -> Response:
    """Write to the workload what its scale is to be."""
    meta, replicas = scale["metadata"], (scale.get("spec") or {}).get("replicas", 0)
    faults = list(at_least_zero("spec.replicas", replicas))
    if faults:
        raise errors.invalid(_kind(), call.name, faults)
    part = dataclasses.replace(call.kind, plural=f"{call.kind.plural}/{PART.name}")
    writes.check_uid(part, meta, record)
    workload = call.stored(record)
    workload["spec"]["replicas"] = replicas
    if is_apply(call):
        workload = scalers.take_over(workload, scale)
    workload["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
    return _answer(call, writes.replace(call, workload, record))


def _answer(call: Call, record: Record) -> Response:
    made = make_record(_scale(call.stored(record)), record.version)
    return Response(200, form_of(_of_scales(call)).one(made), JSON_HEADERS)


def _scale(workload: Object) -> Object:
    meta, spec = workload["metadata"], workload.get("spec") or {}
    status = {"replicas": (workload.get("status") or {}).get("replicas", 0)}
    selector = selector_text(spec.get("selector"), empty="", invalid="")
    return {
        "kind": PART.kind,
        "apiVersion": f"{PART.group}/{PART.version}",
        "metadata": {key: meta[key] for key in _META if key in meta},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {**status, "selector": selector} if selector else status,
    }


def _kind() -> Kind:
    """What is sent and shown here; nothing is stored as it."""
    group, version, kind = PART.group, PART.version, PART.kind
    named = type_for(group, version, kind)
    return Kind(group, version, kind, "scales", "scale", type_name=named)


def _of_scales(call: Call) -> Call:
    """The same request, about objects of that kind."""
    return call.within(Place(_kind(), call.namespace, call.name, PART.name))
