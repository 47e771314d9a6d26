"""What is special about kinds that are stored for others: workloads, budgets, priorities."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.amount import parse_amount
from everynode.api.daemonset import Fault
from everynode.api.defaults import default_template
from everynode.api.validation.faults import (
    IMMUTABLE,
    at_least_zero,
    forbidden,
    invalid,
    required,
    unsupported,
)
from everynode.api.validation.selector import check_selector, selects
from everynode.api.validation.template import check_template
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

_HIGHEST: Final = 1_000_000_000
_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class SpecRules(Rules):
    """A spec, a status apart from it, and a count of changes."""

    status = True
    generation = True


class IdleRules(SpecRules):
    """A workload that nothing here runs; whoever describes it is told by an event."""

    def companions(self, obj: Object, world: World) -> list[tuple[str, str, Object]]:
        """The event that says so."""
        meta, kind = obj["metadata"], obj["kind"]
        about = {key: meta[key] for key in ("namespace", "name", "uid")}
        event: Object = {
            "metadata": {"generateName": f"{meta['name']}-"},
            "involvedObject": {"kind": kind, "apiVersion": obj["apiVersion"], **about},
            "type": "Warning",
            "reason": "NotSimulated",
            "message": f"The embedded cluster keeps {kind}s but makes no pods of them.",
            "source": {"component": "everynode"},
            "firstTimestamp": world.now,
            "lastTimestamp": world.now,
            "count": 1,
        }
        return [("events", meta["namespace"], event)]

    def change_part(self, part: str, new: Object, old: Object, world: World) -> list[Fault]:
        """Another scale is another spec."""
        self.prepare_update(new, old, world)
        return []


class ReplicaSetRules(IdleRules):
    """Replica sets get their defaults; nothing here runs them."""

    def default(self, obj: Object) -> Object:
        """Fill in how many, and the template."""
        spec = {**(obj.get("spec") or {})}
        spec.setdefault("replicas", 1)
        spec["template"] = default_template(spec.get("template") or {})
        return {**obj, "spec": spec}

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """A selector is needed, and must select the template, which must make sense."""
        spec = obj["spec"]
        selector, template = spec.get("selector"), spec.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels")
        faults = [required("spec.selector")] if selector is None else []
        faults += check_selector(selector or {}, "spec.selector")
        faults += at_least_zero("spec.replicas", spec["replicas"])
        if selector is None or selects(selector, labels or {}) is False:
            path, why = (
                "spec.template.metadata.labels",
                "`selector` does not match template `labels`",
            )
            faults.append(invalid(path, labels, why))
        return [*faults, *check_template(template, "spec.template")]

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same, and another selector."""
        faults = self.create_faults(new, world)
        selector = new["spec"].get("selector")
        if selector != old["spec"].get("selector"):
            faults.append(invalid("spec.selector", selector, IMMUTABLE))
        return faults

    def prepare_create(self, obj: Object, world: World) -> None:
        """It starts with no pods."""
        super().prepare_create(obj, world)
        obj["status"] = {"replicas": 0}


class DeploymentRules(ReplicaSetRules):
    """The same of deployments, which also say how they are updated."""

    def default(self, obj: Object) -> Object:
        """Fill in the strategy, too."""
        made = super().default(obj)
        spec = made["spec"]
        spec["strategy"] = _strategy(spec.get("strategy") or {})
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        return made

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
        """One way of counting at a time, and one that can be understood."""
        spec = obj.get("spec") or {}
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        faults = []
        if least is not None and most is not None:
            why = "minAvailable and maxUnavailable cannot be both set"
            faults.append(invalid("spec", spec, why))
        for key, value in (("minAvailable", least), ("maxUnavailable", most)):
            amount = parse_amount(value, at_most_all=True) if value is not None else None
            if isinstance(amount, str):
                faults.append(invalid(f"spec.{key}", value, amount))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            faults.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
        return [*faults, *check_selector(spec.get("selector") or {}, "spec.selector")]

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same."""
        return self.create_faults(new, world)


class PriorityRules(Rules):
    """Priority classes hardly change once they are made."""

    generation = True

    def default(self, obj: Object) -> Object:
        """They preempt unless they say otherwise."""
        return {"preemptionPolicy": "PreemptLowerPriority", **obj}

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Some names and values are the system's own."""
        name, value = obj["metadata"]["name"], obj.get("value", 0)
        if name.startswith("system-") and SYSTEM_CLASSES.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only."
            known = f"error: {name} is not a known system priority class"
            return [forbidden("metadata.name", f"{why} {known}")]
        if not name.startswith("system-") and value > _HIGHEST:
            why = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            return [forbidden("value", why)]
        return []

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The value stays."""
        faults = []
        if new.get("value") != old.get("value"):
            faults.append(forbidden("value", "may not be changed in an update."))
        if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
            faults.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE))
        return faults
