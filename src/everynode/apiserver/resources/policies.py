"""Strategies of ResourceQuotas, NetworkPolicies and FlowSchemas: stored but not enforced."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.defaults import write_quantity
from everynode.api.quantity import parse_quantity
from everynode.api.validation.field_errors import AT_LEAST_0, invalid, required
from everynode.api.validation.selector import check_selector
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]
_LAST_PRECEDENCE: Final = 10_000


class ResourceQuotaStrategy(ResourceStrategy):
    """ResourceQuotas: a warning says that they are not enforced."""

    status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> Object:
        """Write the quantities in canonical form."""
        spec = {**(obj.get("spec") or {})}
        if spec.get("hard"):
            spec["hard"] = {key: write_quantity(value) for key, value in spec["hard"].items()}
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with an empty status."""
        obj["status"] = {}

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that no amount is negative."""
        faults = _amount_faults(obj["spec"].get("hard") or {})
        if not faults:
            context.warn("the embedded cluster keeps ResourceQuotas but does not enforce them")
        return faults

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same."""
        return _amount_faults(new["spec"].get("hard") or {})


class NetworkPolicyStrategy(ResourceStrategy):
    """NetworkPolicies: without effect, because simulated pods have no network."""

    generation = True

    def default(self, obj: Object) -> Object:
        """Default policyTypes, and the protocol of ports."""
        spec = {**(obj.get("spec") or {})}
        for direction in ("ingress", "egress"):
            if spec.get(direction):
                spec[direction] = [_default_rule(rule) for rule in spec[direction]]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return {**obj, "spec": spec}

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the pod selector."""
        return list(check_selector(obj["spec"].get("podSelector") or {}, "spec.podSelector"))

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same."""
        return self.validate_create(new, context)


class FlowSchemaStrategy(ResourceStrategy):
    """FlowSchemas: a warning says that all requests are handled alike."""

    status = True
    generation = True

    def default(self, obj: Object) -> Object:
        """Default the precedence."""
        spec = {**(obj.get("spec") or {})}
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = 1000
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with an empty status, at the first generation."""
        super().prepare_create(obj, context)
        obj["status"] = {}

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that a priority level is named and that the precedence is in its range."""
        faults = _flow_faults(obj["spec"])
        if not faults:
            context.warn("the embedded cluster keeps FlowSchemas but handles all requests alike")
        return faults

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same."""
        return _flow_faults(new["spec"])


def _flow_faults(spec: Object) -> list[FieldError]:
    faults = []
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        path = "spec.priorityLevelConfiguration.name"
        faults.append(required(path, "must reference a priority level"))
    precedence = spec["matchingPrecedence"]
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        faults.append(invalid(path, precedence, "must be a positive value"))
    if precedence > _LAST_PRECEDENCE:
        faults.append(invalid(path, precedence, f"must not be greater than {_LAST_PRECEDENCE}"))
    return faults


def _amount_faults(hard: Object) -> list[FieldError]:
    return [
        invalid(f"spec.hard[{name}]", amount, AT_LEAST_0)
        for name, amount in sorted(hard.items())
        if parse_quantity(amount).nanos < 0
    ]


def _default_rule(rule: Object) -> Object:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}
