"""Readiness gates: the status patches that open and close them, and set Ready to False."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.objects import Condition, Pod
from everynode.api.times import format_time
from everynode.decide.actions import Cause, PatchPod
from everynode.decide.pods.patch import patch_pod


class GateWrite(msgspec.Struct, frozen=True):
    """The values to write to the condition of a readiness gate."""

    type: str
    open: bool
    reason: str = ""
    message: str = ""


def has_gate(pod: Pod, kind: str) -> bool:
    """Whether the pod has a readiness gate for that condition."""
    return kind in [gate.condition_type for gate in pod.spec.readiness_gates]


def is_open(pod: Pod, kind: str) -> bool:
    """Whether the pod's condition of that type is True."""
    condition = pod.condition(kind)
    return condition is not None and condition.status == "True"


def gate_patch(
    pod: Pod,
    gates: Sequence[GateWrite],
    *,
    now: float,
    cause: Cause,
    metadata: Mapping[str, Any] | None = None,
) -> PatchPod:
    """Return a patch of the pod's status that sets these gates, and Ready to False if one closes.

    With `metadata` the patch changes the metadata too.
    """
    moment = format_time(now)
    conditions = [_condition_patch(pod, gate, moment) for gate in gates]
    closed = _closed_gates(pod, gates)
    if closed and is_open(pod, keys.READY) and is_open(pod, keys.CONTAINERS_READY):
        # The kubelet sets Ready to False at its next sync; until then traffic would go on.
        message = ", ".join(closed)
        not_ready = GateWrite(
            keys.READY, open=False, reason="ReadinessGatesNotReady", message=message
        )
        conditions.append(_condition_patch(pod, not_ready, moment))
    return patch_pod(
        pod,
        cause,
        metadata=metadata,
        status={"conditions": conditions},
        subresource="status",
        # The first write of a gate needs no resourceVersion: right after a pod is created the
        # scheduler and the kubelet write to it, and the patch would often conflict.
        require_version=metadata is not None or not all(_is_unset(pod, gate) for gate in gates),
    )


def _is_unset(pod: Pod, gate: GateWrite) -> bool:
    return gate.open and pod.condition(gate.type) is None


def _condition_patch(pod: Pod, gate: GateWrite, moment: str) -> dict[str, Any]:
    """Return the condition as a patch; its time changes only with the status.

    null removes a field.
    """
    before: Condition | None = pod.condition(gate.type)
    status = "True" if gate.open else "False"
    written: dict[str, Any] = {
        "type": gate.type,
        "status": status,
        "reason": gate.reason or None,
        "message": gate.message or None,
    }
    if before is None or before.status != status or before.last_transition_time is None:
        written["lastTransitionTime"] = moment
    return written


def _closed_gates(pod: Pod, gates: Sequence[GateWrite]) -> list[str]:
    """Return a message for each gate that is not open, worded as the kubelet does."""
    wanted = {gate.type: gate.open for gate in gates}
    closed = []
    for kind in dict.fromkeys(gate.condition_type for gate in pod.spec.readiness_gates):
        condition = pod.condition(kind)
        if wanted.get(kind, condition is not None and condition.status == "True"):
            continue
        if kind not in wanted and condition is None:
            closed.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
            continue
        status = "False" if kind in wanted or condition is None else condition.status
        closed.append(f'the status of pod readiness gate "{kind}" is not "True", but {status}')
    return closed
