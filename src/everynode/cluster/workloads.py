"""What is special about kinds that are stored for others: workloads, budgets, priorities."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import Fault
from everynode.api.defaults import default_template
from everynode.api.validation.selector import check_selector
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]


class SpecRules(Rules):
    """A spec, a status apart from it, and a count of changes."""

    status = True
    generation = True


class DeploymentRules(SpecRules):
    """Deployments get their defaults; nothing here runs them."""

    def default(self, obj: Object) -> Object:
        """Fill in strategy and template."""
        spec = {**(obj.get("spec") or {})}
        spec.setdefault("replicas", 1)
        spec["template"] = default_template(spec.get("template") or {})
        spec["strategy"] = _strategy(spec.get("strategy") or {})
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        return {**obj, "spec": spec}

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """A selector is needed, and must select the template."""
        selector = obj["spec"].get("selector")
        if not selector:
            return [Fault("spec.selector", "Required value")]
        return list(check_selector(selector, "spec.selector"))

    def prepare_create(self, obj: Object, world: World) -> None:
        """It starts without a status."""
        super().prepare_create(obj, world)
        obj["status"] = {}


def _strategy(strategy: Object) -> Object:
    kind = strategy.get("type") or "RollingUpdate"
    made = {**strategy, "type": kind}
    if kind == "RollingUpdate":
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
        made["rollingUpdate"] = {**rolling, **(strategy.get("rollingUpdate") or {})}
    return made


class BudgetRules(SpecRules):
    """A budget starts with nothing allowed, until somebody has counted."""

    def prepare_create(self, obj: Object, world: World) -> None:
        """Nothing is known yet."""
        super().prepare_create(obj, world)
        obj["status"] = {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        }

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """One way of counting at a time."""
        spec = obj.get("spec") or {}
        faults = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            faults.append(
                Fault(
                    "spec",
                    "Invalid value: minAvailable and maxUnavailable cannot be both set",
                )
            )
        return [*faults, *check_selector(spec.get("selector") or {}, "spec.selector")]


class PriorityRules(Rules):
    """Priority classes hardly change once they are made."""

    generation = True

    def default(self, obj: Object) -> Object:
        """They preempt unless they say otherwise."""
        return {"preemptionPolicy": "PreemptLowerPriority", **obj}

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The value stays."""
        faults = []
        if new.get("value") != old.get("value"):
            faults.append(Fault("value", "Forbidden: may not be changed in an update."))
        if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
            value = new.get("preemptionPolicy")
            faults.append(
                Fault("preemptionPolicy", f'Invalid value: "{value}": field is immutable')
            )
        return faults
