"""PodDisruptionBudgets: their status, and the disruptions that evictions use up."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.daemonset import IntOrPercent, LabelSelector
from everynode.api.int_or_percent import parse_int_or_percent, scaled_value
from everynode.api.selector import SelectorError, compile_selector
from everynode.apiserver.errors import too_many_requests
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.resources.conditions import is_true, set_condition

Object = dict[str, Any]

BUDGETS: Final = "poddisruptionbudgets.policy"
VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def budgets_for_pod(request: ApiRequest, pod: Object) -> list[Object]:
    """Return the budgets whose selector matches a pod."""
    labels = pod["metadata"].get("labels") or {}
    budgets = request.all(BUDGETS, pod["metadata"]["namespace"])
    return [budget for budget in budgets if _selects(budget, labels)]


def refresh_statuses(request: ApiRequest, namespace: str = "", name: str = "") -> None:
    """Update the status of one budget, or of all budgets of a namespace."""
    collection = request.state.store.collection(BUDGETS)
    for record in list(collection.scan(namespace)):
        if name and record.name != name:
            continue
        budget = request.stored(record)
        counted = compute_status(request, budget)
        if counted != budget.get("status"):
            request.state.store.put(collection, {**budget, "status": counted})


def compute_status(request: ApiRequest, budget: Object) -> Object:
    """Compute the status of a budget from its pods."""
    meta, spec, old = budget["metadata"], budget.get("spec") or {}, budget.get("status") or {}
    pods = [
        pod
        for pod in request.all("pods", meta["namespace"])
        if _selects(budget, pod["metadata"].get("labels") or {})
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods)
    healthy = sum(
        1
        for pod in pods
        if is_true(pod, "Ready")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
    )
    expected = len(pods)
    desired = _desired_healthy(spec, expected)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status: Object = {**old, "observedGeneration": meta.get("generation", 0)}
    status.pop("disruptedPods", None)
    if disrupted:
        status["disruptedPods"] = disrupted
    status |= {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }
    set_condition(status, _disruption_condition(allowed, meta.get("generation", 0)), request.now)
    return status


def _still_disrupted(noted: Object, pods: list[Object]) -> Object:
    """Return the evicted pods that are not terminating yet; a later pod may reuse the name."""
    born = {
        pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    }
    return {name: time for name, time in noted.items() if name in born and born[name] < time}


def use_disruption(request: ApiRequest, budget: Object, pod: str, *, dry_run: bool) -> None:
    """Use one disruption of a budget for a pod; Refusal (429) if none is allowed."""
    status = compute_status(request, budget)
    if status["disruptionsAllowed"] <= 0:
        message = (
            f"The disruption budget {budget['metadata']['name']} needs "
            f"{status['desiredHealthy']} healthy pods and has "
            f"{status['currentHealthy']} currently"
        )
        cause = {"reason": "DisruptionBudget", "message": message}
        raise too_many_requests(VIOLATED, seconds=0, causes=[cause])
    if dry_run:
        return
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: request.now}
    status["disruptionsAllowed"] -= 1
    condition = _disruption_condition(
        status["disruptionsAllowed"], budget["metadata"].get("generation", 0)
    )
    set_condition(status, condition, request.now)
    collection = request.state.store.collection(BUDGETS)
    request.state.store.put(collection, {**budget, "status": status})


def _disruption_condition(allowed: int, generation: int) -> Object:
    return {
        "type": "DisruptionAllowed",
        "status": "True" if allowed > 0 else "False",
        "reason": "SufficientPods" if allowed > 0 else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }


def _desired_healthy(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - _number_of_pods(spec["maxUnavailable"], expected))
    return _number_of_pods(spec.get("minAvailable", 1), expected)


def _number_of_pods(value: object, total: int) -> int:
    amount = parse_int_or_percent(value)
    return scaled_value(amount, total, round_up=True) if isinstance(amount, IntOrPercent) else 0


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    try:
        wanted = msgspec.convert(selector, LabelSelector)
        return compile_selector(wanted).matches(labels)
    except (msgspec.ValidationError, SelectorError):
        return False
