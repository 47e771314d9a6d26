"""What is special about events, leases and revisions: small objects that others keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault
from everynode.api.selector import label_key_faults
from everynode.api.validation.faults import at_least_zero, invalid, invalid_each, required
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

_INVOLVED: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)
_TYPES: Final = ("Normal", "Warning")


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

    def __init__(self, *, new_style: bool = False) -> None:
        self._new_style = new_style  # as events.k8s.io has them

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
        """An event lives with what it is about; new ones say more than old ones."""
        faults: list[Fault] = []
        if obj.get("eventTime"):
            faults += _timed_faults(obj, "reportingController" if self._new_style else "")
        involved = (obj.get("involvedObject") or {}).get("namespace", "")
        namespace = obj["metadata"].get("namespace", "")
        homes = ("default", "kube-system") if obj.get("eventTime") else ("default",)
        astray = namespace not in homes if not involved else namespace != involved
        if astray and not (involved and obj.get("eventTime")):
            path = "involvedObject.namespace"
            faults.append(invalid(path, involved, "does not match event.namespace"))
        if self._new_style:
            faults += _style_faults(obj)
        return faults

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """An event may be counted up."""
        return self.create_faults(new, world) if not self._new_style else []


def _timed_faults(event: Object, controller: str) -> Iterator[Fault]:
    name = event.get("reportingComponent", "")
    path = controller or "reportingComponent"
    if not name:
        yield required(path)
    yield from invalid_each(path, name, label_key_faults(name))
    for key in ("reportingInstance", "action", "reason"):
        if not event.get(key):
            yield required(key)


def _style_faults(event: Object) -> Iterator[Fault]:
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in _TYPES:
        value = event.get("type", "")
        yield invalid("type", "", f"has invalid value: {value}")
    for key in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(key):
            yield invalid(key, "", "needs to be unset")
    if event.get("source"):
        yield invalid("source", "", "needs to be unset")


class LeaseRules(Rules):
    """Leases are locks: nobody overwrites one without having seen it."""

    unconditional_update = False
    create_on_update = True

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """A lease lasts some time."""
        spec = obj.get("spec") or {}
        faults = []
        if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
            path, value = "spec.leaseDurationSeconds", spec["leaseDurationSeconds"]
            faults.append(invalid(path, value, "must be greater than 0"))
        if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
            path, value = "spec.leaseTransitions", spec["leaseTransitions"]
            faults.append(invalid(path, value, "must be greater than or equal to 0"))
        return faults

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same."""
        return self.create_faults(new, world)


class RevisionRules(Rules):
    """What a revision holds is fixed; only its number moves."""

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """There must be something to keep."""
        faults = list(at_least_zero("revision", obj.get("revision")))
        if "data" not in obj:
            faults.append(required("data", "data is mandatory"))
        return faults

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The data stay."""
        faults = list(at_least_zero("revision", new.get("revision")))
        after, before = (msgspec.json.encode(each.get("data")) for each in (new, old))
        if after != before:
            faults.append(invalid("data", new.get("data"), "field is immutable"))
        return faults

    def after_patch(self, obj: Object) -> Object:
        """A patch sorts the data's members, which are compared as bytes."""
        if "data" not in obj:
            return obj
        ordered = msgspec.json.encode(obj["data"], order="sorted")
        return {**obj, "data": msgspec.json.decode(ordered)}
