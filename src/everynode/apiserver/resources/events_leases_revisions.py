"""Strategies of Events, Leases and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.selector import label_key_errors
from everynode.api.validation.field_errors import (
    IMMUTABLE,
    at_least_zero,
    invalid,
    invalid_each,
    required,
)
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

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
# Immutable fields of an event of events.k8s.io.
_IMMUTABLE_FIELDS: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


class EventStrategy(ResourceStrategy):
    """Events: field selectors on the involved object."""

    fields = (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )
    create_on_update = True

    def __init__(self, *, new_style: bool = False) -> None:
        self._new_style = new_style  # validated as in events.k8s.io

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Return involved object, reason, source and type."""
        involved = obj.get("involvedObject") or {}
        source = (obj.get("source") or {}).get("component", "")
        return (
            *(involved.get(name, "") for name in _INVOLVED),
            obj.get("reason", ""),
            obj.get("reportingComponent", ""),
            source or obj.get("reportingComponent", ""),
            obj.get("type", ""),
        )

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the namespace; events of events.k8s.io have more required fields."""
        return [*self._faults(obj), *(_new_style_faults(obj) if self._new_style else ())]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same; in events.k8s.io only the series may change."""
        return [*self._faults(new), *(_immutable_faults(new, old) if self._new_style else ())]

    def _faults(self, obj: Object) -> list[FieldError]:
        faults: list[FieldError] = []
        if obj.get("eventTime"):
            faults += _event_time_faults(obj, "reportingController" if self._new_style else "")
        involved = (obj.get("involvedObject") or {}).get("namespace", "")
        namespace = obj["metadata"].get("namespace", "")
        homes = ("default", "kube-system") if obj.get("eventTime") else ("default",)
        astray = namespace not in homes if not involved else namespace != involved
        if astray and not (involved and obj.get("eventTime")):
            path = "involvedObject.namespace"
            faults.append(invalid(path, involved, "does not match event.namespace"))
        return faults


def _event_time_faults(event: Object, controller: str) -> Iterator[FieldError]:
    name = event.get("reportingComponent", "")
    path = controller or "reportingComponent"
    if not name:
        yield required(path)
    yield from invalid_each(path, name, label_key_errors(name))
    for key in ("reportingInstance", "action", "reason"):
        if not event.get(key):
            yield required(key)


def _immutable_faults(new: Object, old: Object) -> Iterator[FieldError]:
    for key in _IMMUTABLE_FIELDS:
        if (new.get(key) or None) != (old.get(key) or None):
            path = "reportingController" if key == "reportingComponent" else key
            empty = None if key.endswith(("Time", "Timestamp")) else ""
            yield invalid(path, new.get(key) or empty, IMMUTABLE)


def _new_style_faults(event: Object) -> Iterator[FieldError]:
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


class LeaseStrategy(ResourceStrategy):
    """Leases: an update needs the resourceVersion, because a lease is a lock."""

    unconditional_update = False
    create_on_update = True

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the duration and the number of transitions."""
        spec = obj.get("spec") or {}
        faults = []
        if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
            path, value = "spec.leaseDurationSeconds", spec["leaseDurationSeconds"]
            faults.append(invalid(path, value, "must be greater than 0"))
        if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
            path, value = "spec.leaseTransitions", spec["leaseTransitions"]
            faults.append(invalid(path, value, "must be greater than or equal to 0"))
        return faults

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same."""
        return self.validate_create(new, context)


class ControllerRevisionStrategy(ResourceStrategy):
    """ControllerRevisions: the data are immutable."""

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that there are data."""
        faults = list(at_least_zero("revision", obj.get("revision")))
        if "data" not in obj:
            faults.append(required("data", "data is mandatory"))
        return faults

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check that the data did not change."""
        faults = list(at_least_zero("revision", new.get("revision")))
        after, before = (msgspec.json.encode(each.get("data")) for each in (new, old))
        if after != before:
            faults.append(invalid("data", new.get("data"), "field is immutable"))
        return faults

    def after_patch(self, obj: Object) -> Object:
        """Sort the members of the data, as kube-apiserver does; they are compared as bytes."""
        if "data" not in obj:
            return obj
        ordered = msgspec.json.encode(obj["data"], order="sorted")
        return {**obj, "data": msgspec.json.decode(ordered)}
