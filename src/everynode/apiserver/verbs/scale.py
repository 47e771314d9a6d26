"""Scale subresource: reads and writes spec.replicas of Deployments and ReplicaSets."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from everynode.api.types import type_for
from everynode.api.validation.field_errors import at_least_zero
from everynode.apiserver import errors
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.output.table.cells import selector_text
from everynode.apiserver.request.api_request import ApiRequest, ResourcePath
from everynode.apiserver.request.body import read_object
from everynode.apiserver.resources.registry import STATUS_VERBS, Kind, Subresource
from everynode.apiserver.storage.store import Record, encode_record
from everynode.apiserver.verbs import scale_owners, write
from everynode.apiserver.verbs.patch import is_apply, object_after_patch
from everynode.apiserver.verbs.read import JSON_HEADERS
from everynode.kube.requests import Response

Object = dict[str, Any]

SCALE: Final = Subresource("scale", "Scale", STATUS_VERBS, group="autoscaling", version="v1")
_META: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def get(request: ApiRequest) -> Response:
    """GET of a scale."""
    return _respond(request, request.record())


def update(request: ApiRequest) -> Response:
    """PUT of a scale."""
    scale_request = _as_scale_request(request)
    scale = read_object(scale_request)
    request.warnings.extend(scale_request.warnings)
    write.check_name_and_namespace(request, scale["metadata"])
    return _write_replicas(request, request.record(), scale)


def patch(request: ApiRequest) -> Response:
    """PATCH of a scale; a server-side apply makes its field manager an owner of spec.replicas."""
    record, scale_request = request.record(), _as_scale_request(request)
    workload = request.stored(record)
    scale = _scale_of(workload)
    if is_apply(request):
        shown = scale_owners.with_replica_owners(workload, scale)
        applied = object_after_patch(scale_request, shown)
        scale = scale_owners.keep_times(shown, applied)
    else:
        scale = object_after_patch(scale_request, scale)
    request.warnings.extend(scale_request.warnings)
    write.check_name_and_namespace(request, scale["metadata"])
    return _write_replicas(request, record, scale)


def _write_replicas(request: ApiRequest, record: Record, scale: Object) -> Response:
    """Write the replicas of a scale to its workload."""
    meta, replicas = scale["metadata"], (scale.get("spec") or {}).get("replicas", 0)
    faults = list(at_least_zero("spec.replicas", replicas))
    if faults:
        raise errors.invalid(_scale_kind(), request.name, faults)
    part = dataclasses.replace(request.kind, plural=f"{request.kind.plural}/{SCALE.name}")
    write.check_uid(part, meta, record)
    workload = request.stored(record)
    workload["spec"]["replicas"] = replicas
    if is_apply(request):
        workload = scale_owners.transfer_replica_owners(workload, scale)
    workload["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
    return _respond(request, write.replace_object(request, workload, record))


def _respond(request: ApiRequest, record: Record) -> Response:
    scale = encode_record(_scale_of(request.stored(record)), record.version)
    return Response(200, representation_for(_as_scale_request(request)).one(scale), JSON_HEADERS)


def _scale_of(workload: Object) -> Object:
    meta, spec = workload["metadata"], workload.get("spec") or {}
    status = {"replicas": (workload.get("status") or {}).get("replicas", 0)}
    selector = selector_text(spec.get("selector"), empty="", invalid="")
    return {
        "kind": SCALE.kind,
        "apiVersion": f"{SCALE.group}/{SCALE.version}",
        "metadata": {key: meta[key] for key in _META if key in meta},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {**status, "selector": selector} if selector else status,
    }


def _scale_kind() -> Kind:
    """Return the kind autoscaling/v1 Scale; it is sent and shown, never stored."""
    group, version, kind = SCALE.group, SCALE.version, SCALE.kind
    named = type_for(group, version, kind)
    return Kind(group, version, kind, "scales", "scale", type_name=named)


def _as_scale_request(request: ApiRequest) -> ApiRequest:
    """Return the same request for a Scale, so that its body is decoded as one."""
    return request.for_path(
        ResourcePath(_scale_kind(), request.namespace, request.name, SCALE.name)
    )
