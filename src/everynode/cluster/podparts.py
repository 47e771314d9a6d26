"""Parts of pods that have an address of their own: binding, eviction and log."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault
from everynode.cluster import budgets, deletes, errors, writes
from everynode.cluster.admission import label_with_place
from everynode.cluster.calls import Call
from everynode.cluster.conditions import find_condition, is_true, set_condition
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.received import Part, read_part
from everynode.cluster.store import Record
from everynode.kube.requests import Response

Object = dict[str, Any]

_SUCCESS: Final = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)
_DONE: Final = Response(201, _SUCCESS, JSON_HEADERS)
_BINDING: Final = (Part("", "v1", "Binding"), "io.k8s.api.core.v1.Binding")
_EVICTION: Final = (Part("policy", "v1", "Eviction"), "io.k8s.api.policy.v1.Eviction")
_OLD_EVICTION: Final = (Part("policy", "v1beta1", "Eviction"), _EVICTION[1])


class _Binding:
    group = ""
    kind = "Binding"
    plural = "pods/binding"


def bind(call: Call) -> Response:
    """Give a pod its node."""
    binding = read_part(call, *_BINDING)
    meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    if call.name and meta.get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    faults = _target_faults(target)
    if faults:
        raise errors.invalid(_Binding(), meta.get("name", ""), faults)
    record = call.record()
    pod = call.stored(record)
    writes.check_uid(call.kind, meta, record)
    why = _unbindable(pod)
    if why:
        raise errors.conflict(_Binding(), call.name, why)
    pod["spec"]["nodeName"] = target["name"]
    for key in ("labels", "annotations"):
        if meta.get(key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **meta[key]}
    label_with_place(pod, target["name"], call)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    set_condition(pod.setdefault("status", {}), condition, call.now)
    writes.commit(call, pod, record)
    return _DONE


def bind_any(call: Call) -> Response:
    """POST to `bindings`: the body says which pod."""
    name = read_part(call, *_BINDING)["metadata"].get("name", "")
    return bind(call.elsewhere("pods", namespace=call.namespace, name=name))


def _target_faults(target: Object) -> list[Fault]:
    faults = []
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        message = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        faults.append(Fault("target.kind", message))
    if not target.get("name"):
        faults.append(Fault("target.name", "Required value"))
    return faults


def _unbindable(pod: Object) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in meta:
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


def evict(call: Call) -> Response:
    """Delete a pod, unless a budget forbids it."""
    part = _OLD_EVICTION if b"policy/v1beta1" in call.request.body else _EVICTION
    eviction = read_part(call, *part)
    if (eviction.get("metadata") or {}).get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = deletes.to_options(call, eviction.get("deleteOptions") or {})
    record = call.record()
    deletes.check_preconditions(call, record, options)
    pod = call.stored(record)
    if not _unprotected(pod):
        refusal = _ask_budgets(call, pod, dry_run=bool(options.dry_run))
        if refusal is not None:
            return refusal
    if not options.dry_run:
        record = _mark_evicted(call, pod, record)
    deletes.delete_object(call, record, options.without_version())
    return _DONE


def _unprotected(pod: Object) -> bool:
    """Pods that do not run are no loss."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _ask_budgets(call: Call, pod: Object, *, dry_run: bool) -> Response | None:
    found = budgets.budgets_of(call, pod)
    if len(found) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support."
        )
        return errors.Refusal(500, "", message).response()
    if not found:
        return None
    budget = found[0]
    if not is_true(pod, "Ready"):
        status = budgets.count(call, budget)
        enough = status["currentHealthy"] >= status["desiredHealthy"] > 0
        if enough or (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return None
    budgets.take(call, budget, call.name, dry_run=dry_run)
    return None


def _mark_evicted(call: Call, pod: Object, record: Record) -> Record:
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
    set_condition(pod.setdefault("status", {}), condition, call.now)
    return writes.commit(call, pod, record)


def log(call: Call) -> Response:
    """What a container would have said, if there were one."""
    pod = call.stored(call.record())
    names = [c["name"] for c in pod["spec"].get("containers") or ()]
    names += [c["name"] for c in pod["spec"].get("initContainers") or ()]
    chosen = call.query.get("container") or (names[0] if len(names) == 1 else "")
    if not chosen:
        raise errors.bad_request(
            f"a container name must be specified for pod {call.name}, "
            f"choose one of: [{' '.join(names)}]"
        )
    if chosen not in names:
        raise errors.bad_request(f"container {chosen} is not valid for pod {call.name}")
    if not pod["spec"].get("nodeName"):
        text = ""
    else:
        text = (
            f"The node {pod['spec']['nodeName']} is simulated: container {chosen} of pod "
            f"{call.namespace}/{call.name} does not really run and has no output.\n"
        )
    return Response(200, text.encode(), {"content-type": "text/plain"})
