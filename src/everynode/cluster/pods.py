"""What is special about pods: a mostly fixed spec, and time to end."""

from __future__ import annotations

import sys
from typing import Any

from everynode.api.defaults import default_pod
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]


class PodRules(Rules):
    """Pods are found by node and phase, and end gracefully."""

    status = True
    generation = True
    returns_deleted = True
    fields = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Where the pod is and how it fares."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        intern = sys.intern
        return (
            spec.get("nodeName", ""),
            intern(spec.get("restartPolicy", "")),
            intern(spec.get("schedulerName", "")),
            intern(spec.get("serviceAccountName", "")),
            "true" if spec.get("hostNetwork") else "false",
            intern(status.get("phase", "")),
            status.get("podIP", ""),
            ",".join(entry.get("ip", "") for entry in status.get("podIPs") or ()),
            intern(status.get("nominatedNodeName", "")),
        )

    def default(self, obj: Object) -> Object:
        """Fill in what pods get by default."""
        return default_pod(obj)

    def prepare_create(self, obj: Object, world: World) -> None:
        """It starts pending."""
        super().prepare_create(obj, world)
        obj["status"] = {"phase": "Pending"}

    def prepare_status(self, new: Object, old: Object, world: World) -> None:
        """A status write cannot end or give away a pod."""
        super().prepare_status(new, old, world)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"):
            value = old["metadata"].get(key)
            if value is None:
                new["metadata"].pop(key, None)
            else:
                new["metadata"][key] = value

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """What was asked for, or what the pod wants; nothing for one that does not run."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
            return 0
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        return 1 if period < 0 else int(period)
