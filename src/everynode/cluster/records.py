"""What is special about events and leases: they may be created by a PUT."""

from __future__ import annotations

from typing import Any

from everynode.api.daemonset import Fault
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class EventRules(Rules):
    """Events are found by what they are about."""

    fields = (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )
    create_on_update = True

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """What the event is about, and why."""
        involved = obj.get("involvedObject") or {}
        source = (obj.get("source") or {}).get("component", "")
        return (
            *(involved.get(name, "") for name in _INVOLVED),
            obj.get("reason", ""),
            obj.get("reportingComponent", ""),
            source or obj.get("reportingComponent", ""),
            obj.get("type", ""),
        )

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """An event lives in the namespace of what it is about, or in `default`."""
        involved = (obj.get("involvedObject") or {}).get("namespace", "")
        namespace = obj["metadata"].get("namespace", "")
        if involved == namespace or (not involved and namespace in ("default", "kube-system")):
            return []
        return [
            Fault(
                "involvedObject.namespace",
                f'Invalid value: "{involved}": does not match event.namespace',
            )
        ]


class LeaseRules(Rules):
    """Leases are locks: nobody overwrites one without having seen it."""

    unconditional_update = False
    create_on_update = True
