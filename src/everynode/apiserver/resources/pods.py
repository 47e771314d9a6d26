"""Strategy of Pods: a mostly immutable spec, and graceful deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.apiserver.resources import admission
from everynode.apiserver.resources.conditions import set_condition
from everynode.apiserver.resources.pod_spec_cache import (
    default_pod_metadata,
    default_pod_spec,
    spec_faults,
)
from everynode.apiserver.resources.qos import qos_class
from everynode.apiserver.resources.resize import (
    container_faults,
    resize_faults,
    restore_all_but_resources,
)
from everynode.apiserver.resources.strategy import PartialObject, ResourceStrategy, StrategyContext

Object = dict[str, Any]

_SPEC_FIELD_COUNT: Final = 5  # how many of the selectable fields come from the spec
_FINISHED: Final = ("Failed", "Succeeded")
_IMMUTABLE_SPEC: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


_GATED_CONDITION: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    termination_grace_period_seconds: int = 0


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _PartialPod(msgspec.Struct, frozen=True, gc=False):
    metadata: msgspec.Raw
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode_partial_pod: Final[Callable[[bytes], _PartialPod]] = msgspec.json.Decoder(
    _PartialPod
).decode


class PodStrategy(ResourceStrategy):
    """Pods: field selectors on node and phase, a mostly immutable spec, a grace period."""

    status = True
    status_is_independent = True
    generation = True
    returns_deleted_object = True
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
        """Return node, phase and the other selectable fields."""
        spec = obj.get("spec") or {}
        place = (
            spec.get("nodeName", ""),
            spec.get("restartPolicy", ""),
            spec.get("schedulerName", ""),
            spec.get("serviceAccountName", ""),
            "true" if spec.get("hostNetwork") else "false",
        )
        return self.selectable_after_status(obj.get("status") or {}, place)

    def selectable_after_status(self, status: Object, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Keep the fields of the spec, and read those of the new status."""
        return (
            *fields[:_SPEC_FIELD_COUNT],
            status.get("phase", ""),
            status.get("podIP", ""),
            ",".join([entry.get("ip", "") for entry in status.get("podIPs") or ()]),
            status.get("nominatedNodeName", ""),
        )

    def default(self, obj: Object) -> Object:
        """Set the defaults of a pod."""
        return default_pod_spec(obj)

    def default_status(self, obj: Object) -> Object:
        """Skip the spec, which stays and has its defaults already."""
        return default_pod_metadata(obj)

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with phase Pending and the QoS class."""
        super().prepare_create(obj, context)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj)}
        if (obj["spec"].get("terminationGracePeriodSeconds") or 0) < 0:
            obj["spec"]["terminationGracePeriodSeconds"] = 1
        if obj["spec"].get("schedulingGates"):
            set_condition(obj["status"], _GATED_CONDITION, context.now)

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Set service account, priority and default tolerations."""
        admission.admit_create(obj, context)

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Validate the spec."""
        return spec_faults(obj)

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Restore what admission set on create."""
        admission.admit_update(new, old)
        super().prepare_update(new, old, context)

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check that only the mutable fields of the spec changed."""
        after, before = new["spec"], old["spec"]
        if after == before:
            return []
        faults = container_faults(after, before)
        if faults:
            return faults
        faults = [
            *spec_faults(new),
            *_deadline_faults(after, before),
            *_toleration_faults(after, before),
            *_gate_faults(after, before),
        ]
        rest = _restore_mutable_fields(after, before)
        if rest != before:
            faults.append(
                FieldError("spec", f"{_IMMUTABLE_SPEC}\n{_format_difference(rest, before)}")
            )
        return faults

    def prepare_status(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Restore deletion and owner references, and the QoS class."""
        super().prepare_status(new, old, context)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"):
            value = old["metadata"].get(key)
            if value is None:
                new["metadata"].pop(key, None)
            else:
                new["metadata"][key] = value
        status = new.setdefault("status", {})
        status.setdefault("phase", "Pending")
        _sync_pod_ips(status)
        qos = (old.get("status") or {}).get("qosClass")
        if qos:
            status["qosClass"] = qos

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        """Check that a finished pod stays finished."""
        before = (old.get("status") or {}).get("phase")
        after = new["status"].get("phase")
        if before in _FINISHED and after not in (before, *_FINISHED):
            path = "status.phase"
            return [FieldError(path, f'Forbidden: a pod that is {before} cannot become "{after}"')]
        return []

    def prepare_subresource(
        self, part: str, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Resize: change the containers' resources only."""
        restore_all_but_resources(new, old)
        return resize_faults(new, old)

    def partial_object(self, body: bytes) -> PartialObject:
        """Decode node, phase and grace period."""
        known = _decode_partial_pod(body)
        spec = {
            "nodeName": known.spec.node_name,
            "terminationGracePeriodSeconds": known.spec.termination_grace_period_seconds,
        }
        return PartialObject(
            known.metadata, {"spec": spec, "status": {"phase": known.status.phase}}
        )

    def grace(self, obj: Object, requested: int | None) -> int | None:
        """Return the requested grace period or the pod's own; 0 for a pod that does not run."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in _FINISHED:
            return 0
        period = (
            requested if requested is not None else spec.get("terminationGracePeriodSeconds", 0)
        )
        return 1 if period < 0 else int(period)


def _sync_pod_ips(status: Object) -> None:
    """Keep podIP and the first of podIPs equal."""
    address, listed = status.get("podIP"), status.get("podIPs")
    if address and (not listed or listed[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif listed and not address:
        status["podIP"] = listed[0].get("ip", "")


def _deadline_faults(after: Object, before: Object) -> list[FieldError]:
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if old is None or new == old:
        return []
    if new is None:
        why = "must not update from a positive integer to nil value"
        return [FieldError(path, f"Invalid value: null: {why}")]
    if new > old:
        return [
            FieldError(path, f"Invalid value: {new}: must be less than or equal to previous value")
        ]
    return []


def _toleration_faults(after: Object, before: Object) -> list[FieldError]:
    kept = [_drop_seconds(toleration) for toleration in after.get("tolerations") or ()]
    for toleration in before.get("tolerations") or ():
        if _drop_seconds(toleration) not in kept:
            message = "existing toleration can not be modified except its tolerationSeconds"
            return [FieldError("spec.tolerations", f"Forbidden: {message}")]
    return []


def _drop_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_faults(after: Object, before: Object) -> list[FieldError]:
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    return [
        FieldError(
            f"spec.schedulingGates[{index}].name",
            "Forbidden: only deletion is allowed, but found new scheduling gate "
            f"'{gate.get('name')}'",
        )
        for index, gate in enumerate(after.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _restore_mutable_fields(after: Object, before: Object) -> Object:
    """Return the new spec with all mutable fields set back to their old values."""
    restored = {**after}
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        if key in before:
            restored[key] = before[key]
        else:
            restored.pop(key, None)
    for key in ("containers", "initContainers"):
        if key in restored:
            restored[key] = [
                {**new, "image": old.get("image", "")}
                for new, old in zip(restored[key], before.get(key) or [], strict=True)
            ]
    grace = before.get("terminationGracePeriodSeconds", 0)
    if grace < 0 and restored.get("terminationGracePeriodSeconds") == 1:
        restored["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        # The node selector and affinity of a gated pod may be narrowed down.
        for key in ("nodeSelector", "affinity"):
            if key in before:
                restored[key] = before[key]
            else:
                restored.pop(key, None)
    return restored


def _format_difference(after: Object, before: Object) -> str:
    """Format the changed members, one line for the old and one for the new value."""
    lines = []
    for key in sorted({*after, *before}):
        if after.get(key) != before.get(key):
            lines += [f"- {key}: {before.get(key)}", f"+ {key}: {after.get(key)}"]
    return "\n".join(lines)
