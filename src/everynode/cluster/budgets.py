"""Disruption budgets: how many of their pods may be evicted now."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.amount import parse_amount, scale
from everynode.api.daemonset import Amount, LabelSelector
from everynode.api.selector import SelectorError, compile_selector
from everynode.cluster.calls import Call
from everynode.cluster.conditions import is_true, set_condition
from everynode.cluster.errors import too_many_requests

Object = dict[str, Any]

BUDGETS: Final = "poddisruptionbudgets.policy"
VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def budgets_of(call: Call, pod: Object) -> list[Object]:
    """The budgets that count a pod."""
    labels = pod["metadata"].get("labels") or {}
    budgets = call.all(BUDGETS, pod["metadata"]["namespace"])
    return [budget for budget in budgets if _selects(budget, labels)]


def refresh(call: Call, namespace: str = "", name: str = "") -> None:
    """Count the pods of the budgets of a namespace, or of one budget, anew."""
    collection = call.site.store.collection(BUDGETS)
    for record in list(collection.scan(namespace)):
        if name and record.name != name:
            continue
        budget = call.stored(record)
        counted = count(call, budget)
        if counted != budget.get("status"):
            call.site.store.put(collection, {**budget, "status": counted})


def count(call: Call, budget: Object) -> Object:
    """The status of a budget, as the pods are now."""
    meta, spec, old = budget["metadata"], budget.get("spec") or {}, budget.get("status") or {}
    pods = [
        pod
        for pod in call.all("pods", meta["namespace"])
        if _selects(budget, pod["metadata"].get("labels") or {})
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    disrupted = _disrupted(old.get("disruptedPods") or {}, pods)
    healthy = sum(
        1
        for pod in pods
        if is_true(pod, "Ready")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
    )
    expected = len(pods)
    desired = _desired(spec, expected)
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
    set_condition(status, _allowed(allowed, meta.get("generation", 0)), call.now)
    return status


def _disrupted(noted: Object, pods: list[Object]) -> Object:
    """Who is evicted and does not show it yet; a successor may have the same name."""
    born = {
        pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    }
    return {name: time for name, time in noted.items() if name in born and born[name] < time}


def take(call: Call, budget: Object, pod: str, *, dry_run: bool) -> None:
    """Use up one disruption of a budget, or refuse."""
    status = count(call, budget)
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
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: call.now}
    status["disruptionsAllowed"] -= 1
    condition = _allowed(status["disruptionsAllowed"], budget["metadata"].get("generation", 0))
    set_condition(status, condition, call.now)
    collection = call.site.store.collection(BUDGETS)
    call.site.store.put(collection, {**budget, "status": status})


def _allowed(allowed: int, generation: int) -> Object:
    return {
        "type": "DisruptionAllowed",
        "status": "True" if allowed > 0 else "False",
        "reason": "SufficientPods" if allowed > 0 else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }


def _desired(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - _scaled(spec["maxUnavailable"], expected))
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(value: object, total: int) -> int:
    amount = parse_amount(value)
    return scale(amount, total, round_up=True) if isinstance(amount, Amount) else 0


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    try:
        wanted = msgspec.convert(selector, LabelSelector)
        return compile_selector(wanted).matches(labels)
    except (msgspec.ValidationError, SelectorError):
        return False
