"""Strategy of Nodes: created with a status, and tainted as not ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everynode.api import keys
from everynode.api.daemonset import FieldError
from everynode.api.defaults import write_quantity
from everynode.api.selector import label_key_errors, label_value_errors
from everynode.api.taints import EFFECTS
from everynode.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid_each,
    required,
    unsupported,
)
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]


class NodeStrategy(ResourceStrategy):
    """Nodes: new ones carry the not-ready taint until the node lifecycle controller removes it."""

    fields = ("spec.unschedulable",)
    status = True

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Return whether the node is cordoned."""
        return ("true" if (obj.get("spec") or {}).get("unschedulable") else "false",)

    def default(self, obj: Object) -> Object:
        """Default allocatable to the capacity, and podCIDR to the first of podCIDRs."""
        status = {**(obj.get("status") or {})}
        for key in ("capacity", "allocatable"):
            if status.get(key):
                status[key] = {name: write_quantity(v) for name, v in status[key].items()}
        if "capacity" in status:
            status.setdefault("allocatable", dict(status["capacity"]))
        spec = {**(obj.get("spec") or {})}
        if spec.get("podCIDR"):
            others = [each for each in spec.get("podCIDRs") or () if each != spec["podCIDR"]]
            spec["podCIDRs"] = [spec["podCIDR"], *others[1:]]
        elif spec.get("podCIDRs"):
            spec["podCIDR"] = spec["podCIDRs"][0]
        return {**obj, "spec": spec, "status": status}

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Keep the status; nodes have no generation."""

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Add the not-ready taint."""
        taints = obj["spec"].get("taints") or []
        mark = {"key": keys.TAINT_NOT_READY, "effect": "NoSchedule"}
        if not any(
            t.get("key") == mark["key"] and t.get("effect") == mark["effect"] for t in taints
        ):
            obj["spec"]["taints"] = [*taints, mark]

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the taints."""
        return list(_taint_faults(obj["spec"].get("taints") or []))

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check that podCIDRs and providerID stay, once set."""
        after, before = new["spec"], old["spec"]
        faults = []
        if before.get("podCIDRs") and before["podCIDRs"] != after.get("podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            faults.append(forbidden("spec.podCIDRs", detail))
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            detail = 'node updates may not change providerID except from "" to valid'
            faults.append(forbidden("spec.providerID", detail))
        return [*faults, *self.validate_create(new, context)]


def _taint_faults(taints: list[Object]) -> Iterator[FieldError]:
    """Yield faults of taints; kube-apiserver names `metadata.taints`, too."""
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(taints):
        path = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        yield from invalid_each(f"{path}.key", key, label_key_errors(key))
        value = taint.get("value", "")
        yield from invalid_each(f"{path}.value", value, label_value_errors(value))
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in EFFECTS:
            yield unsupported(f"{path}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            yield duplicate(path, taint)
        seen.append((key, effect))
