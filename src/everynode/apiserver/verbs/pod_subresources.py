"""Pod subresources: binding, eviction and log."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.apiserver import errors
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.body import NestedKind, read_subresource_object
from everynode.apiserver.resources import pod_disruption_budgets
from everynode.apiserver.resources.admission import add_topology_labels
from everynode.apiserver.resources.conditions import find_condition, is_true, set_condition
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.storage.store import Record
from everynode.apiserver.verbs import delete, write
from everynode.apiserver.verbs.read import JSON_HEADERS
from everynode.kube.requests import Response

Object = dict[str, Any]

_SUCCESS: Final = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)
_CREATED: Final = Response(201, _SUCCESS, JSON_HEADERS)
_BINDING: Final = NestedKind("", "v1", "Binding", ObjectType("io.k8s.api.core.v1.Binding"))
_EVICTION_TYPE: Final = ObjectType("io.k8s.api.policy.v1.Eviction")
_EVICTION: Final = NestedKind("policy", "v1", "Eviction", _EVICTION_TYPE)
_EVICTION_V1BETA1: Final = NestedKind("policy", "v1beta1", "Eviction", _EVICTION_TYPE)


class _Binding:
    group = ""
    kind = "Binding"
    plural = "pods/binding"


def bind(request: ApiRequest) -> Response:
    """POST to `pods/binding`: set the node of a pod."""
    binding = read_subresource_object(request, _BINDING)
    meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    if request.name and meta.get("name") != request.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    faults = _target_faults(target)
    if faults:
        raise errors.invalid(_Binding(), meta.get("name", ""), faults)
    record = request.record()
    pod = request.stored(record)
    write.check_uid(request.kind, meta, record)
    why = _why_not_bindable(pod)
    if why:
        raise errors.conflict(_Binding(), request.name, why)
    pod["spec"]["nodeName"] = target["name"]
    for key in ("labels", "annotations"):
        if meta.get(key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **meta[key]}
    add_topology_labels(pod, target["name"], request)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    set_condition(pod.setdefault("status", {}), condition, request.now)
    write.commit(request, pod, record)
    return _CREATED


def bind_from_collection(request: ApiRequest) -> Response:
    """POST to `bindings`: the body names the pod."""
    name = read_subresource_object(request, _BINDING)["metadata"].get("name", "")
    return bind(request.for_core_kind("pods", namespace=request.namespace, name=name))


def _target_faults(target: Object) -> list[FieldError]:
    faults = []
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        message = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        faults.append(FieldError("target.kind", message))
    if not target.get("name"):
        faults.append(FieldError("target.name", "Required value"))
    return faults


def _why_not_bindable(pod: Object) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in meta:
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


def evict(request: ApiRequest) -> Response:
    """POST to `pods/eviction`: delete a pod unless a PodDisruptionBudget forbids it."""
    object_type = _EVICTION_V1BETA1 if b"policy/v1beta1" in request.http.body else _EVICTION
    eviction = read_subresource_object(request, object_type)
    if (eviction.get("metadata") or {}).get("name") != request.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = delete.validate_options(request, eviction.get("deleteOptions") or {})
    record = request.record()
    delete.check_preconditions(request, record, options)
    pod = request.stored(record)
    if not _is_exempt_from_budgets(pod):
        refusal = _check_budgets(request, pod, dry_run=bool(options.dry_run))
        if refusal is not None:
            return refusal
    if not options.dry_run:
        record = _mark_evicted(request, pod, record)
    delete.delete_object(request, record, options.without_version_precondition())
    return _CREATED


def _is_exempt_from_budgets(pod: Object) -> bool:
    """Whether the pod is not running or already terminating, so that no budget protects it."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _check_budgets(request: ApiRequest, pod: Object, *, dry_run: bool) -> Response | None:
    found = pod_disruption_budgets.budgets_for_pod(request, pod)
    if len(found) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support."
        )
        return errors.StatusError(500, "", message).response()
    if not found:
        return None
    budget = found[0]
    if not is_true(pod, "Ready"):
        status = pod_disruption_budgets.compute_status(request, budget)
        enough = status["currentHealthy"] >= status["desiredHealthy"] > 0
        if enough or (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return None
    pod_disruption_budgets.use_disruption(request, budget, request.name, dry_run=dry_run)
    return None


def _mark_evicted(request: ApiRequest, pod: Object, record: Record) -> Record:
    found = find_condition(pod, "DisruptionTarget")
    if found is not None and found.get("status") == "True":
        return record
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(pod.setdefault("status", {}), condition, request.now)
    return write.commit(request, pod, record)


def log(request: ApiRequest) -> Response:
    """GET of `pods/log`: a sentence in the place of output, as containers are simulated."""
    pod = request.stored(request.record())
    names = [c["name"] for c in pod["spec"].get("containers") or ()]
    names += [c["name"] for c in pod["spec"].get("initContainers") or ()]
    chosen = request.query.get("container") or (names[0] if len(names) == 1 else "")
    if not chosen:
        raise errors.bad_request(
            f"a container name must be specified for pod {request.name}, "
            f"choose one of: [{' '.join(names)}]"
        )
    if chosen not in names:
        raise errors.bad_request(f"container {chosen} is not valid for pod {request.name}")
    if not pod["spec"].get("nodeName"):
        text = ""
    else:
        text = (
            f"The node {pod['spec']['nodeName']} is simulated: container {chosen} of pod "
            f"{request.namespace}/{request.name} does not really run and has no output.\n"
        )
    return Response(200, text.encode(), {"content-type": "text/plain"})


def refuse_connection(request: ApiRequest) -> Response:
    """GET and POST of `pods/attach`, `pods/exec` and `pods/portforward`: raises 400."""
    pod = request.stored(request.record())
    node = pod["spec"].get("nodeName")
    if not node:
        raise errors.bad_request(f"pod {request.name} does not have a host assigned")
    raise errors.bad_request(
        f"the node {node} is simulated: pod {request.namespace}/{request.name} does not really "
        "run, so there is nothing to connect to"
    )
