"""Rollout: how the old pod of a node is updated, and which budget that needs (R4, R5, R6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide.actions import Cause, PatchPod
from everynode.decide.inplace.diff import Recreate
from everynode.decide.inplace.update import (
    IN_PLACE_TIMEOUT,
    Wait,
    has_gates_to_open,
    maintenance_patch,
    settles_at,
)
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue, earliest
from everynode.decide.node.clock_skew import effective_time
from everynode.decide.node.maintenance import explain_set_aside, is_planned
from everynode.decide.node.node_state import NodeState
from everynode.decide.node.placement import NodeIntent, create_step, explain_backoff
from everynode.decide.node.reasons import Reason
from everynode.decide.node.room import NOT_CONCERNED, RoomCheck, check_room
from everynode.decide.node.steps import Step, StepKind, removal_steps

# Where a node that had no room waits to be observed again: it comes after the others.
_OBSERVED_AGAIN: Final = {
    Queue.UPDATE_READY: Queue.UPDATE_READY_LAST,
    Queue.SURGE: Queue.SURGE_LAST,
}


def update_node(node: NodeState, in_place: Sequence[InPlaceProgress] = ()) -> NodeIntent:
    """Return how the old pod of a node is updated or replaced, if the node has one.

    `in_place` is the result of `in_place_progress` for the same node.
    """
    if not in_place:
        return _update(node, None)
    intent = _update(node, next((each for each in in_place if each.failure), None))
    times_out_at = (each.wake_at for each in in_place)
    return intent._replace(wake_at=earliest(node.now, intent.wake_at, *times_out_at))


def _update(node: NodeState, failed: InPlaceProgress | None) -> NodeIntent:
    old = node.kept_old
    if failed is None and (old is None or not node.in_scope):
        return NodeIntent()
    if not node.plan.updating:
        return NodeIntent()
    if node.set_aside:
        return NodeIntent(reason=explain_set_aside(node.node))
    if failed is not None:
        return _recreate_failed(node, failed)
    assert old is not None
    return _surge(node, old) if node.plan.surging else _replace(node, old)


def _replace(node: NodeState, old: Pod) -> NodeIntent:
    """Delete the old pod, or update it in place: one pod at a time on a node."""
    if node.pods.leaving:
        # The successor of this pod would have to wait for the terminating pod too.
        return NodeIntent(reason=Reason(reasons.TERMINATING, "another of its pods is still going"))
    if not node.eligible.should_run and node.is_withdrawn(old):
        return _withdraw(node, old)
    if not node.eligible.should_run and not _fits_in_place(node, old):
        return NodeIntent(reason=_kept_on_tainted_node(node))
    return _take(node, old)


def _take(node: NodeState, pod: Pod, reason: Reason | None = None) -> NodeIntent:
    wake_at = None if node.is_ready(pod) else node.sick_at(pod)
    sick = wake_at is not None and wake_at <= node.now
    # Only an old pod can have been sick before the target came.
    step = Step(StepKind.UPDATE, Cause.UPDATE, pod, sick=sick and pod in node.old_pods)
    if pod in node.old_pods and node.is_taken_out_of_service(pod):
        # Its node is down already, even if fewer may be since.
        queue = Queue.RECREATE_NO_BUDGET
    elif not sick:
        # A pod that is not Ready for a moment is an ordinary pod on a node that is down.
        planned = Queue.UPDATE_READY_LAST if is_planned(node.node) else Queue.UPDATE_READY
        queue = Queue.UPDATE_READY_NO_BUDGET if node.down else planned
    elif node.blocks_replacements:
        queue = Queue.REPLACE_UNREADY_NO_BUDGET
    else:
        queue = Queue.REPLACE_UNREADY
    return _in_room(node, NodeIntent(queue, (step,), reason, wake_at), _room_after(node, pod))


def _room_after(node: NodeState, pod: Pod) -> RoomCheck:
    """Return whether a target pod has room where this pod was (R4).

    No room is needed where the target pod exists, and where the pod is updated in place: a kubelet
    resizes a pod only if there is room.
    """
    plan = node.plan
    if not plan.requests_grow(pod) or node.kept_target not in (None, pod):
        return NOT_CONCERNED
    if _fits_in_place(node, pod):
        return NOT_CONCERNED
    return check_room(node.view.room, plan.target_hash, pod.uid, node.now)


def _in_room(node: NodeState, intent: NodeIntent, room: RoomCheck) -> NodeIntent:
    """Hold back a node without room; have the room observed where it is not known."""
    if room is NOT_CONCERNED:
        return intent
    wake_at = earliest(node.now, intent.wake_at, room.until)
    reason = intent.reason
    if room.missing:
        reason = Reason(reasons.INSUFFICIENT_RESOURCES, reasons.shorten(room.missing))
    if not room.outdated:
        held = NodeIntent(reason=reason, wake_at=wake_at)
        return held if room.missing else intent._replace(wake_at=wake_at)
    queue = intent.queue
    if room.missing:
        queue = _OBSERVED_AGAIN.get(queue, queue)
    steps = tuple(msgspec.structs.replace(step, check_room=True) for step in intent.steps)
    return NodeIntent(queue, steps, reason, wake_at)


def _surge(node: NodeState, old: Pod) -> NodeIntent:
    """Create the target beside the old pod, which is deleted when the target is available (R5).

    A sick old pod is deleted first, so that its node never has two pods and the limits on
    replacements and on surge both hold.
    """
    sick_at = None if node.is_ready(old) else node.sick_at(old)
    sick = sick_at is not None and sick_at <= node.now
    if node.kept_target is not None:
        # Both pods exist. A sick old pod need not wait for the target.
        return _take(node, old) if sick else _end_surge(node, old, sick_at)
    if not node.eligible.should_run and node.is_withdrawn(old) and not node.pods.leaving:
        return _withdraw(node, old)
    if not node.eligible.should_run:
        return NodeIntent(reason=_kept_on_tainted_node(node))
    if node.plan.has_port_conflict(old):
        text = "the target needs a host port that the old pod holds; use maxUnavailable instead"
        return NodeIntent(reason=Reason(reasons.SURGE_CANNOT_FIT, text))
    if node.pods.leaving:
        return NodeIntent(reason=Reason(reasons.TERMINATING, "another of its pods is still going"))
    backoff = explain_backoff(node)
    if backoff is not None:
        return NodeIntent(reason=backoff.reason, wake_at=backoff.until)
    if sick:
        return _take(node, old)
    step = create_step(node, node.plan.target_hash, Cause.SURGE)
    queue = Queue.SURGE_LAST if is_planned(node.node) else Queue.SURGE
    # The new pod needs room beside the old one.
    room = check_room(node.view.room, node.plan.target_hash, "", node.now)
    return _in_room(node, NodeIntent(queue, (step,), wake_at=sick_at), room)


def _withdraw(node: NodeState, old: Pod) -> NodeIntent:
    """Remove the pod of a node that gets no other one: the target withdraws its toleration."""
    steps = removal_steps(node.plan, (old,), Cause.UPDATE)
    reason = Reason(reasons.TURN, f"its pod is to go: {node.eligible.reason}")
    return NodeIntent(Queue.WITHDRAW if steps else Queue.NONE, steps, reason)


def _end_surge(node: NodeState, old: Pod, sick_at: float | None) -> NodeIntent:
    """Delete the old pod where the target pod is available, once the target is proven elsewhere.

    When the target is proven on this node, the clean-up deletes the old pod.
    """
    target = node.kept_target
    if target is None or target.uid not in node.up:
        return NodeIntent(wake_at=sick_at)
    steps = removal_steps(node.plan, (old,), Cause.SURGED)
    return NodeIntent(Queue.END_SURGE if steps else Queue.NONE, steps, wake_at=sick_at)


def _kept_on_tainted_node(node: NodeState) -> Reason:
    text = f"{node.eligible.reason}: its pod is kept and cannot be recreated"
    return Reason(reasons.TAINTED, text)


# --- In place ----------------------------------------------------------------------------------


class InPlaceProgress(NamedTuple):
    """The progress of the in-place update of one pod: its next step, or why it failed."""

    pod: Pod
    step: Step | None = None
    failure: str = ""
    wake_at: float | None = None  # when the update times out


def in_place_progress(node: NodeState) -> list[InPlaceProgress]:
    """Return the in-place updates of the node's pods, and the gates that have to be opened."""
    return [_progress_of(node, pod) for pod in node.kept if _may_need_write(node, pod)]


def _may_need_write(node: NodeState, pod: Pod) -> bool:
    """Whether an in-place update can be under way; a cheap check that is usually False.

    It is False if every gate is open and no update is recorded.
    """
    gated = bool(pod.spec.readiness_gates) and pod.uid not in node.available
    return gated or _has_record(pod)


def _has_record(pod: Pod) -> bool:
    """Whether the pod has OpenKruise's annotation about its last in-place update."""
    noted = pod.metadata.annotations
    return bool(noted.inplace_state or noted.inplace_state_old)


def _progress_of(node: NodeState, pod: Pod) -> InPlaceProgress:
    # API servers since 1.36 refuse a resize that does not fit the node; a retry is useless.
    unresizable = (pod.uid, pod.hash) == node.view.unresizable
    if not _is_moving_to_target(node, pod):
        if unresizable or not _needs_maintenance(node, pod):
            return InPlaceProgress(pod, wake_at=settles_at(pod, node.view.ahead))
        return InPlaceProgress(pod, Step(StepKind.MAINTAIN, Cause.GATE, pod))
    created_at_target = pod.hash == node.plan.target_hash and not _has_record(pod)
    if unresizable:
        failure = "" if created_at_target else "the API server refuses to resize it"
        return InPlaceProgress(pod, failure=failure)
    advance = (
        Step(StepKind.ADVANCE_IN_PLACE, Cause.IN_PLACE, pod)
        if node.node.ready != "Unknown"
        else None
    )
    if created_at_target:
        # It was never updated in place: only its gates may have to be opened.
        return InPlaceProgress(pod, advance if has_gates_to_open(pod) else None)
    step = node.plan.next_in_place_step(pod, now=node.now, ahead=node.view.ahead)
    if isinstance(step, Recreate):
        return InPlaceProgress(pod, failure=step.reason)
    if isinstance(step, Wait):
        return InPlaceProgress(pod, wake_at=step.until)
    if isinstance(step, PatchPod):
        return InPlaceProgress(pod, advance, wake_at=_times_out_at(node, pod))
    return InPlaceProgress(pod)


def _is_moving_to_target(node: NodeState, pod: Pod) -> bool:
    """Whether the pod is at the target, or was taken out of service to be updated in place."""
    if not node.in_scope:
        return False
    if pod.hash == node.plan.target_hash:
        return True
    return node.plan.in_place and node.plan.updating and node.is_taken_out_of_service(pod)


def _needs_maintenance(node: NodeState, pod: Pod) -> bool:
    if not _has_record(pod):
        return has_gates_to_open(pod)  # the same result without building the patch
    return maintenance_patch(pod, now=node.now, ahead=node.view.ahead) is not None


def _times_out_at(node: NodeState, pod: Pod) -> float | None:
    """Return when a pod that was taken out of service, and not updated since, is recreated."""
    if pod.hash == node.plan.target_hash:
        return None
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    if condition is None or condition.last_transition_time is None:
        return None
    closed_at = effective_time(seconds(condition.last_transition_time), node.view.ahead)
    return closed_at + IN_PLACE_TIMEOUT


def _recreate_failed(node: NodeState, failed: InPlaceProgress) -> NodeIntent:
    """Recreate a pod whose in-place update failed; the budget applies."""
    if not node.eligible.should_run:
        text = f"{failed.failure}, and {node.eligible.reason}: it cannot be recreated"
        return _serve_on(node, failed.pod, NodeIntent(reason=Reason(reasons.TAINTED, text)))
    reason = Reason(reasons.IN_PLACE, f"recreated: {failed.failure}")
    return _serve_on(node, failed.pod, _take(node, failed.pod, reason))


def _serve_on(node: NodeState, pod: Pod, intent: NodeIntent) -> NodeIntent:
    """Put a pod back into service that can be neither changed nor recreated now."""
    if intent.steps or not node.is_taken_out_of_service(pod):
        return intent
    times_out_at = _times_out_at(node, pod)
    if times_out_at is not None and times_out_at <= node.now:
        return intent  # it would be made unready again at once
    step = Step(StepKind.MAINTAIN, Cause.GATE, pod)
    return intent._replace(queue=Queue.MAINTAIN, steps=(step,))


def _fits_in_place(node: NodeState, old: Pod) -> bool:
    if not node.plan.in_place or (old.uid, old.hash) == node.view.unresizable:
        return False
    step = node.plan.next_in_place_step(old, now=node.now, ahead=node.view.ahead)
    return isinstance(step, PatchPod)
