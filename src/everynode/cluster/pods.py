"""What is special about pods: a mostly fixed spec, and time to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.api.daemonset import Fault
from everynode.cluster import admission
from everynode.cluster.conditions import set_condition
from everynode.cluster.podspecs import spec_faults, with_clean_metadata, with_defaults
from everynode.cluster.qos import qos_class
from everynode.cluster.resize import container_faults, keep_all_but_resources, resize_faults
from everynode.cluster.rules import Rules, Sketch, World

Object = dict[str, Any]

_OF_SPEC: Final = 5  # of the selectable fields, the first so many
_ENDED: Final = ("Failed", "Succeeded")
_FIXED: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


_GATED: Final = {
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


class _Ending(msgspec.Struct, frozen=True, gc=False):
    metadata: msgspec.Raw
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode_ending: Final[Callable[[bytes], _Ending]] = msgspec.json.Decoder(_Ending).decode


class PodRules(Rules):
    """Pods are found by node and phase, change little, and end gracefully."""

    status = True
    status_alone = True
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
        spec = obj.get("spec") or {}
        place = (
            spec.get("nodeName", ""),
            spec.get("restartPolicy", ""),
            spec.get("schedulerName", ""),
            spec.get("serviceAccountName", ""),
            "true" if spec.get("hostNetwork") else "false",
        )
        return self.select_again(obj.get("status") or {}, place)

    def select_again(self, status: Object, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Where the pod is, and how it fares now."""
        return (
            *fields[:_OF_SPEC],
            status.get("phase", ""),
            status.get("podIP", ""),
            ",".join([entry.get("ip", "") for entry in status.get("podIPs") or ()]),
            status.get("nominatedNodeName", ""),
        )

    def default(self, obj: Object) -> Object:
        """Fill in what pods get by default."""
        return with_defaults(obj)

    def default_status(self, obj: Object) -> Object:
        """The spec stays what it is, and has everything already."""
        return with_clean_metadata(obj)

    def prepare_create(self, obj: Object, world: World) -> None:
        """It starts pending."""
        super().prepare_create(obj, world)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj)}
        if obj["spec"].get("schedulingGates"):
            set_condition(obj["status"], _GATED, world.now)

    def admit(self, obj: Object, world: World) -> None:
        """It gets an account, a priority and patience."""
        admission.admit_new(obj, world)

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """What the API forbids in a pod's spec."""
        return spec_faults(obj)

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """What admission gave to the pod, it keeps."""
        admission.admit_changed(new, old)
        super().prepare_update(new, old, world)

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """Nearly everything of the spec is fixed."""
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
        rest = _as_if_unchanged(after, before)
        if rest != before:
            faults.append(Fault("spec", f"{_FIXED}\n{_difference(rest, before)}"))
        return faults

    def prepare_status(self, new: Object, old: Object, world: World) -> None:
        """A status write cannot end or give away a pod."""
        super().prepare_status(new, old, world)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"):
            value = old["metadata"].get(key)
            if value is None:
                new["metadata"].pop(key, None)
            else:
                new["metadata"][key] = value
        status = new.setdefault("status", {})
        status.setdefault("phase", "Pending")
        _list_address(status)
        quality = (old.get("status") or {}).get("qosClass")
        if quality:
            status["qosClass"] = quality

    def status_faults(self, new: Object, old: Object) -> list[Fault]:
        """An ended pod stays ended."""
        before = (old.get("status") or {}).get("phase")
        after = new["status"].get("phase")
        if before in _ENDED and after not in (before, *_ENDED):
            path = "status.phase"
            return [Fault(path, f'Forbidden: a pod that is {before} cannot become "{after}"')]
        return []

    def change_part(self, part: str, new: Object, old: Object, world: World) -> list[Fault]:
        """A resize changes the resources alone."""
        keep_all_but_resources(new, old)
        return resize_faults(new, old)

    def sketch(self, body: bytes) -> Sketch:
        """Where it is, how it fares and how long it takes to end."""
        known = _decode_ending(body)
        spec = {
            "nodeName": known.spec.node_name,
            "terminationGracePeriodSeconds": known.spec.termination_grace_period_seconds,
        }
        return Sketch(known.metadata, {"spec": spec, "status": {"phase": known.status.phase}})

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """What was asked for, or what the pod wants; nothing for one that does not run."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in _ENDED:
            return 0
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        return 1 if period < 0 else int(period)


def _list_address(status: Object) -> None:
    """The one address is the first of all addresses."""
    address, listed = status.get("podIP"), status.get("podIPs")
    if address and (not listed or listed[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif listed and not address:
        status["podIP"] = listed[0].get("ip", "")


def _deadline_faults(after: Object, before: Object) -> list[Fault]:
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if old is None or new == old:
        return []
    if new is None:
        why = "must not update from a positive integer to nil value"
        return [Fault(path, f"Invalid value: null: {why}")]
    if new > old:
        return [Fault(path, f"Invalid value: {new}: must be less than or equal to previous value")]
    return []


def _toleration_faults(after: Object, before: Object) -> list[Fault]:
    kept = [_timeless(toleration) for toleration in after.get("tolerations") or ()]
    for toleration in before.get("tolerations") or ():
        if _timeless(toleration) not in kept:
            message = "existing toleration can not be modified except its tolerationSeconds"
            return [Fault("spec.tolerations", f"Forbidden: {message}")]
    return []


def _timeless(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_faults(after: Object, before: Object) -> list[Fault]:
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    return [
        Fault(
            f"spec.schedulingGates[{index}].name",
            "Forbidden: only deletion is allowed, but found new scheduling gate "
            f"'{gate.get('name')}'",
        )
        for index, gate in enumerate(after.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _as_if_unchanged(after: Object, before: Object) -> Object:
    """The new spec with everything that may change put back to what it was."""
    made = {**after}
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        if key in before:
            made[key] = before[key]
        else:
            made.pop(key, None)
    for key in ("containers", "initContainers"):
        if key in made:
            made[key] = [
                {**new, "image": old.get("image", "")}
                for new, old in zip(made[key], before.get(key) or [], strict=True)
            ]
    grace = before.get("terminationGracePeriodSeconds", 0)
    if grace < 0 and made.get("terminationGracePeriodSeconds") == 1:
        made["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        # Where a gated pod may go can still be narrowed down.
        for key in ("nodeSelector", "affinity"):
            if key in before:
                made[key] = before[key]
            else:
                made.pop(key, None)
    return made


def _difference(after: Object, before: Object) -> str:
    """The changed members, one line each way."""
    lines = []
    for key in sorted({*after, *before}):
        if after.get(key) != before.get(key):
            lines += [f"- {key}: {before.get(key)}", f"+ {key}: {after.get(key)}"]
    return "\n".join(lines)
