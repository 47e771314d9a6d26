"""What is special about nodes: they may be created with a status, and start out not ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everynode.api import keys
from everynode.api.daemonset import Fault
from everynode.api.defaults import write_quantity
from everynode.api.selector import label_key_faults, label_value_faults
from everynode.api.taints import EFFECTS
from everynode.api.validation.faults import (
    duplicate,
    forbidden,
    invalid_each,
    required,
    unsupported,
)
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]


class NodeRules(Rules):
    """A new node carries the not-ready taint until somebody has seen its kubelet."""

    fields = ("spec.unschedulable",)
    status = True

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Whether the node is cordoned."""
        return ("true" if (obj.get("spec") or {}).get("unschedulable") else "false",)

    def default(self, obj: Object) -> Object:
        """Allocatable is the capacity unless somebody says otherwise."""
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

    def prepare_create(self, obj: Object, world: World) -> None:
        """The status stays, and nothing is counted."""

    def admit(self, obj: Object, world: World) -> None:
        """Taint it as not ready."""
        taints = obj["spec"].get("taints") or []
        mark = {"key": keys.TAINT_NOT_READY, "effect": "NoSchedule"}
        if not any(
            t.get("key") == mark["key"] and t.get("effect") == mark["effect"] for t in taints
        ):
            obj["spec"]["taints"] = [*taints, mark]

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Taints must make sense."""
        return list(_taint_faults(obj["spec"].get("taints") or []))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """What a cloud or a controller has given to the node stays."""
        after, before = new["spec"], old["spec"]
        faults = []
        if before.get("podCIDRs") and before["podCIDRs"] != after.get("podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            faults.append(forbidden("spec.podCIDRs", detail))
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            detail = 'node updates may not change providerID except from "" to valid'
            faults.append(forbidden("spec.providerID", detail))
        return [*faults, *self.create_faults(new, world)]


def _taint_faults(taints: list[Object]) -> Iterator[Fault]:
    """The API server says `metadata.taints` where it means `spec.taints`."""
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(taints):
        path = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        yield from invalid_each(f"{path}.key", key, label_key_faults(key))
        value = taint.get("value", "")
        yield from invalid_each(f"{path}.value", value, label_value_faults(value))
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in EFFECTS:
            yield unsupported(f"{path}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            yield duplicate(path, taint)
        seen.append((key, effect))
