"""What is special about quotas and network policies: they are kept, and nobody enforces them."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import Fault
from everynode.api.defaults import write_quantity
from everynode.api.quantity import parse_quantity
from everynode.api.validation.faults import AT_LEAST_0, invalid
from everynode.api.validation.selector import check_selector
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]


class QuotaRules(Rules):
    """A quota says how much there may be at most; the writer is warned that nobody counts."""

    status = True
    returns_deleted = True

    def default(self, obj: Object) -> Object:
        """Write the amounts as Kubernetes does."""
        spec = {**(obj.get("spec") or {})}
        if spec.get("hard"):
            spec["hard"] = {key: write_quantity(value) for key, value in spec["hard"].items()}
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, world: World) -> None:
        """Nothing is counted yet."""
        obj["status"] = {}

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Nobody can have less than nothing."""
        faults = _amount_faults(obj["spec"].get("hard") or {})
        if not faults:
            world.warn("the embedded cluster keeps ResourceQuotas but does not enforce them")
        return faults

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same."""
        return _amount_faults(new["spec"].get("hard") or {})


class NetworkPolicyRules(Rules):
    """A policy says who may talk to whom; simulated pods talk to nobody."""

    generation = True

    def default(self, obj: Object) -> Object:
        """Fill in the directions, and the protocol of ports."""
        spec = {**(obj.get("spec") or {})}
        for direction in ("ingress", "egress"):
            if spec.get(direction):
                spec[direction] = [_default_rule(rule) for rule in spec[direction]]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return {**obj, "spec": spec}

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """The pods must be selected by something that can be understood."""
        return list(check_selector(obj["spec"].get("podSelector") or {}, "spec.podSelector"))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same."""
        return self.create_faults(new, world)


def _amount_faults(hard: Object) -> list[Fault]:
    return [
        invalid(f"spec.hard[{name}]", amount, AT_LEAST_0)
        for name, amount in sorted(hard.items())
        if parse_quantity(amount).nanos < 0
    ]


def _default_rule(rule: Object) -> Object:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}
