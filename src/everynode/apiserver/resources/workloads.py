"""Strategies of ReplicaSets, Deployments, PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.defaults import default_template
from everynode.api.int_or_percent import parse_int_or_percent
from everynode.api.keys import SYSTEM_PRIORITIES
from everynode.api.validation.field_errors import (
    IMMUTABLE,
    at_least_zero,
    forbidden,
    invalid,
    required,
    unsupported,
)
from everynode.api.validation.selector import check_selector, selector_matches
from everynode.api.validation.template import check_template
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]

_MAX_USER_PRIORITY: Final = 1_000_000_000
_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


class SpecAndStatusStrategy(ResourceStrategy):
    """Kinds with a spec, a status subresource and a generation."""

    status = True
    generation = True


class UnsimulatedWorkloadStrategy(SpecAndStatusStrategy):
    """Workloads that no controller here runs; an event says so in `kubectl describe`."""

    def created_with(self, obj: Object, context: StrategyContext) -> list[tuple[str, str, Object]]:
        """Create the event."""
        meta, kind = obj["metadata"], obj["kind"]
        about = {key: meta[key] for key in ("namespace", "name", "uid")}
        event: Object = {
            "metadata": {"generateName": f"{meta['name']}-"},
            "involvedObject": {"kind": kind, "apiVersion": obj["apiVersion"], **about},
            "type": "Warning",
            "reason": "NotSimulated",
            "message": f"The embedded cluster keeps {kind}s but makes no pods of them.",
            "source": {"component": "everynode"},
            "firstTimestamp": context.now,
            "lastTimestamp": context.now,
            "count": 1,
            # All that a stored event has, so that writing it back changes nothing.
            "eventTime": None,
            "reportingComponent": "",
            "reportingInstance": "",
        }
        return [("events", meta["namespace"], event)]

    def prepare_subresource(
        self, part: str, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Scale: an update of the spec."""
        self.prepare_update(new, old, context)
        return []


class ReplicaSetStrategy(UnsimulatedWorkloadStrategy):
    """ReplicaSets: defaulted and validated, not run."""

    def default(self, obj: Object) -> Object:
        """Set the defaults of replicas and template."""
        spec = {**(obj.get("spec") or {})}
        spec.setdefault("replicas", 1)
        spec["template"] = default_template(spec.get("template") or {})
        return {**obj, "spec": spec}

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check selector, replicas and template, and that the selector matches the template."""
        spec = obj["spec"]
        selector, template = spec.get("selector"), spec.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels")
        faults = [required("spec.selector")] if selector is None else []
        faults += check_selector(selector or {}, "spec.selector")
        faults += at_least_zero("spec.replicas", spec["replicas"])
        if selector is None or selector_matches(selector, labels or {}) is False:
            path, why = (
                "spec.template.metadata.labels",
                "`selector` does not match template `labels`",
            )
            faults.append(invalid(path, labels, why))
        return [*faults, *check_template(template, "spec.template")]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same, and that the selector stays."""
        faults = self.validate_create(new, context)
        selector = new["spec"].get("selector")
        if selector != old["spec"].get("selector"):
            faults.append(invalid("spec.selector", selector, IMMUTABLE))
        return faults

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with zero replicas."""
        super().prepare_create(obj, context)
        obj["status"] = {"replicas": 0}


class DeploymentStrategy(ReplicaSetStrategy):
    """Deployments: as ReplicaSets, with an update strategy."""

    def default(self, obj: Object) -> Object:
        """Set the defaults of the update strategy, too."""
        defaulted = super().default(obj)
        spec = defaulted["spec"]
        spec["strategy"] = _default_update_strategy(spec.get("strategy") or {})
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        return defaulted

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with an empty status."""
        super().prepare_create(obj, context)
        obj["status"] = {}


def _default_update_strategy(strategy: Object) -> Object:
    kind = strategy.get("type") or "RollingUpdate"
    defaulted = {**strategy, "type": kind}
    if kind == "RollingUpdate":
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
        defaulted["rollingUpdate"] = {**rolling, **(strategy.get("rollingUpdate") or {})}
    return defaulted


class PodDisruptionBudgetStrategy(SpecAndStatusStrategy):
    """PodDisruptionBudgets: allow no disruption until their pods were counted."""

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with all counts at zero."""
        super().prepare_create(obj, context)
        obj["status"] = {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        }

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that at most one of minAvailable and maxUnavailable is set, and is valid."""
        spec = obj.get("spec") or {}
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        faults = []
        if least is not None and most is not None:
            why = "minAvailable and maxUnavailable cannot be both set"
            faults.append(invalid("spec", spec, why))
        for key, value in (("minAvailable", least), ("maxUnavailable", most)):
            amount = parse_int_or_percent(value, at_most_all=True) if value is not None else None
            if isinstance(amount, str):
                faults.append(invalid(f"spec.{key}", value, amount))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            faults.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
        return [*faults, *check_selector(spec.get("selector") or {}, "spec.selector")]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same."""
        return self.validate_create(new, context)


class PriorityClassStrategy(ResourceStrategy):
    """PriorityClasses: value and preemptionPolicy are immutable."""

    generation = True

    def default(self, obj: Object) -> Object:
        """Default preemptionPolicy."""
        return {"preemptionPolicy": "PreemptLowerPriority", **obj}

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that names and values are not reserved for the system."""
        name, value = obj["metadata"]["name"], obj.get("value", 0)
        if name.startswith("system-") and SYSTEM_PRIORITIES.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only."
            known = f"error: {name} is not a known system priority class"
            return [forbidden("metadata.name", f"{why} {known}")]
        if not name.startswith("system-") and value > _MAX_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {_MAX_USER_PRIORITY}"
            return [forbidden("value", why)]
        return []

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check that value and preemptionPolicy stay."""
        faults = []
        if new.get("value") != old.get("value"):
            faults.append(forbidden("value", "may not be changed in an update."))
        if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
            faults.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE))
        return faults
