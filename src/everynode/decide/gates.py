"""How a readiness gate is opened and closed, and what becomes of Ready meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.objects import Condition, Pod
from everynode.api.times import format_time
from everynode.decide.actions import Because, PatchPod
from everynode.decide.patch import patch_pod


class Gate(msgspec.Struct, frozen=True):
    """What the condition behind a readiness gate should say."""

    type: str
    open: bool
    reason: str = ""
    message: str = ""


def has_gate(pod: Pod, kind: str) -> bool:
    """Whether the pod waits for that condition before it is Ready."""
    return kind in [gate.condition_type for gate in pod.spec.readiness_gates]


def is_open(pod: Pod, kind: str) -> bool:
    """Whether the pod's condition of that type is True."""
    condition = pod.condition(kind)
    return condition is not None and condition.status == "True"


def gate_patch(
    pod: Pod,
    gates: Sequence[Gate],
    *,
    now: float,
    because: Because,
    metadata: Mapping[str, Any] | None = None,
) -> PatchPod:
    """One write of the pod's status that sets these gates, and Ready to False if one closes."""
    moment = format_time(now)
    conditions = [_write(pod, gate, moment) for gate in gates]
    closed = _closed_gates(pod, gates)
    if closed and is_open(pod, keys.READY) and is_open(pod, keys.CONTAINERS_READY):
        # The kubelet would say so at its next sync; until then traffic would go on.
        message = ", ".join(closed)
        not_ready = Gate(keys.READY, open=False, reason="ReadinessGatesNotReady", message=message)
        conditions.append(_write(pod, not_ready, moment))
    return patch_pod(
        pod,
        because,
        metadata=metadata,
        status={"conditions": conditions},
        subresource="status",
        # A gate that nobody has spoken of yet is opened whatever scheduler and kubelet write
        # meanwhile: right after a pod's creation they write so often that we would lose.
        unchanged=metadata is not None or not all(_is_first(pod, gate) for gate in gates),
    )


def _is_first(pod: Pod, gate: Gate) -> bool:
    return gate.open and pod.condition(gate.type) is None


def _write(pod: Pod, gate: Gate, moment: str) -> dict[str, Any]:
    """The condition as a patch: the time moves only with the status, null removes a field."""
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


def _closed_gates(pod: Pod, gates: Sequence[Gate]) -> list[str]:
    """What the kubelet says of each gate that keeps the pod from being Ready, in its words."""
    wanted = {gate.type: gate.open for gate in gates}
    closed = []
    for kind in dict.fromkeys(gate.condition_type for gate in pod.spec.readiness_gates):
        condition = pod.condition(kind)
        if wanted.get(kind, condition is not None and condition.status == "True"):
            continue
        if kind not in wanted and condition is None:
            closed.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
            continue
        said = "False" if kind in wanted or condition is None else condition.status
        closed.append(f'the status of pod readiness gate "{kind}" is not "True", but {said}')
    return closed
