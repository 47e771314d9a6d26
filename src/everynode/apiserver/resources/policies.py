"""Strategies of ResourceQuotas and NetworkPolicies, which are stored but not enforced."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import FieldError
from everynode.api.defaults import write_quantity
from everynode.api.quantity import parse_quantity
from everynode.api.validation.field_errors import AT_LEAST_0, invalid
from everynode.api.validation.selector import check_selector
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]


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
