"""What is special about nodes: they may be created with a status, and start out not ready."""

from __future__ import annotations

from typing import Any

from everynode.api import keys
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
        status = obj.get("status")
        if status and "capacity" in status and "allocatable" not in status:
            obj["status"] = {**status, "allocatable": dict(status["capacity"])}
        if not isinstance(obj.get("spec"), dict):
            obj["spec"] = {}
        return obj

    def prepare_create(self, obj: Object, world: World) -> None:
        """Taint it as not ready; the status stays."""
        taints = obj["spec"].get("taints") or []
        if not any(taint.get("key") == keys.TAINT_NOT_READY for taint in taints):
            taint = {"key": keys.TAINT_NOT_READY, "effect": "NoSchedule"}
            obj["spec"]["taints"] = [*taints, taint]
