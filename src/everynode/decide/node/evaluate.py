"""Evaluation of one node: its state, the steps it needs, and what it waits for."""

from __future__ import annotations

from typing import Final

from everynode.api.objects import Pod
from everynode.decide.actions import Cause
from everynode.decide.inplace.state import state_fault
from everynode.decide.node import reasons
from everynode.decide.node.assessment import (
    NO_COUNTS,
    Assessment,
    Queue,
    TargetFacts,
    earliest,
)
from everynode.decide.node.eligibility import Eligibility, eligibility_for
from everynode.decide.node.failures import is_record_valid
from everynode.decide.node.maintenance import explain_set_aside
from everynode.decide.node.node_state import NodeState, has_pending_create, reached_revision_at
from everynode.decide.node.placement import (
    NodeIntent,
    Waiting,
    clean_up,
    create_missing,
    explain_leaving,
    remove_all_pods,
)
from everynode.decide.node.reasons import Reason, explain_pod
from everynode.decide.node.rollout import in_place_progress, update_node
from everynode.decide.node.steps import removal_steps
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView, WriteKind

_NO_NODE: Final = Eligibility(
    should_run=False, should_continue=False, reason="the node does not exist"
)
# Reasons that are normal for some seconds, and the reason to report after that.
_TIMEOUTS: Final = {
    reasons.STARTING: (reasons.NOT_STARTING, 300.0),
    reasons.IN_PLACE: (reasons.IN_PLACE_LATE, 600.0),
}
_TURN: Final = Reason(reasons.TURN, "waits for its turn")
_WRITING: Final = NodeIntent(reason=Reason(reasons.WRITING, "what we wrote last is not seen yet"))


def target_facts(plan: Plan, view: NodeView) -> TargetFacts:
    """Return the facts from which the scope (R2) is computed; own creates count as if seen.

    An empty node whose last pod was at the target still holds it: its place in the partition is
    not given to another node.
    """
    if view.node is None:
        return TargetFacts(holds_target=False, selected=False, eligibility=_NO_NODE)
    target = plan.target_hash
    holds_target = bool(view.writes) and has_pending_create(view, target)
    last = () if view.pods or view.last_pod is None else (view.last_pod,)
    for pod in view.pods or last:
        holds_target = holds_target or plan.is_at_target(pod)
    return TargetFacts(
        holds_target=holds_target,
        selected=plan.selects(view.node.metadata.labels),
        eligibility=eligibility_for(plan.constraints[target], view.node),
    )


def evaluate_node(
    plan: Plan,
    view: NodeView,
    *,
    in_scope: bool,
    now: float,
    released: bool = True,
    facts: TargetFacts | None = None,
) -> Assessment:
    """Return the assessment of one node.

    `released` is whether selector and partition allow the target on the node, paused or not.
    """
    if view.node is None:
        return _evaluate_deleted_node(plan, view, now)
    node = NodeState(
        plan,
        view,
        view.node,
        facts=facts or target_facts(plan, view),
        in_scope=in_scope,
        released=released,
        now=now,
    )
    intent = _intent(node)
    reason, reason_until = _reason_for(node, intent)
    queue, steps = (Queue.NONE, ()) if node.must_wait else (intent.queue, intent.steps)
    return Assessment(
        view.name,
        in_scope,
        node.node_revision,
        node.facts.eligibility,
        node.counts(reason.code),
        reason,
        queue,
        steps,
        earliest(now, node.changes_at, intent.wake_at, reason_until, view.retry_at),
    )


def skip_failed_node(
    view: NodeView, eligibility: Eligibility, error: Exception, *, in_scope: bool
) -> Assessment:
    """Return the assessment of a node whose evaluation raised: nothing is done, it counts as down.

    No input is known for which this happens. If there is one, other nodes are still updated.
    """
    desired, has_pods = eligibility.should_run, bool(view.pods)
    creating = sum(write.kind is WriteKind.CREATE for write in view.writes)
    down = in_scope and view.node is not None
    counts = NO_COUNTS._replace(
        desired=desired,
        current=desired and has_pods,
        misscheduled=not desired and has_pods,
        held=desired and not in_scope,
        down=down,
        under_way=down,
        creating=creating,
        changing=len(view.writes) - creating,
    )
    text = reasons.shorten(f"left alone after an error: {type(error).__name__}: {error}")
    reason = Reason(reasons.NOT_ASSESSED, text)
    return Assessment(view.name, in_scope, "", eligibility, counts, reason)


def _intent(node: NodeState) -> NodeIntent:
    """Return what the node needs now: first clean-up, then a missing pod, then the update."""
    if node.view.writes:
        return _WRITING  # nothing may be done until the write is seen
    if not node.eligible.should_continue:
        return remove_all_pods(node)
    if node.pods.active:
        in_place = in_place_progress(node)
        steps = clean_up(node) + tuple([each.step for each in in_place if each.step is not None])
        following = update_node(node, in_place)
    else:
        steps = clean_up(node) if node.pods.all else ()
        following = create_missing(node)
    return following._replace(queue=Queue.MAINTAIN, steps=steps) if steps else following


def _reason_for(node: NodeState, intent: NodeIntent) -> Waiting:
    """Return why the node is not done, and when that reason changes without an event."""
    view = node.view
    # The message of a refused write is stale when nothing is left to write.
    if view.trouble and (intent.queue or view.writes):
        return Waiting(Reason(reasons.REFUSED, reasons.shorten(view.trouble)))
    if intent.reason is not None:
        return Waiting(intent.reason)  # its end is part of the intent
    pod = node.kept_target or node.kept_old
    assert pod is not None  # for a node without an active pod the intent has a reason
    reason, until = _explain_active_pod(node, pod)
    fault = _annotation_fault(pod)
    if fault:
        reason = Reason(reason.code, f"{reason.text}; {fault}".strip("; "))
    return Waiting(reason, until)


def _explain_active_pod(node: NodeState, pod: Pod) -> Waiting:
    """Return what a node waits for if its pod is neither removed nor updated now."""
    plan = node.plan
    if node.given_up:
        text = f"pod {pod.name} is not Ready, and neither is its node, as before the update"
        return Waiting(Reason(reasons.NODE_NOT_READY, text))
    if pod.uid not in node.available:
        at = node.node
        reason = explain_set_aside(at) if node.set_aside else explain_pod(pod, at)
        if reason.code not in _TIMEOUTS:
            return Waiting(reason)
        late_code, timeout = _TIMEOUTS[reason.code]
        late_at = reached_revision_at(pod, node.view.ahead) + plan.min_ready_seconds + timeout
        return Waiting(reason if node.now < late_at else Reason(late_code, reason.text), late_at)
    if pod.uid in node.unsteady:
        text = f"pod {pod.name} restarted; it counts as down until it has run for 5 minutes"
        return Waiting(Reason(reasons.RESTARTED, text))
    if pod is node.kept_target:
        if len(node.pods.all) == 1:
            return Waiting(reasons.NO_REASON)
        replacing = Reason(reasons.REPLACING, "another of its pods is to go")
        return explain_leaving(node) or Waiting(replacing)
    if not node.in_scope:
        return Waiting(Reason(reasons.HELD, f"held at revision {node.node_revision}"))
    if not plan.rolling:
        return Waiting(Reason(reasons.ON_DELETE, "updated when its pod is deleted"))
    return Waiting(_TURN)


def _annotation_fault(pod: Pod) -> str:
    """Return what is wrong with our annotations on the pod, which are then ignored."""
    noted = pod.metadata.annotations
    if not (noted.failures or noted.inplace_state or noted.inplace_state_old):
        return ""
    if not is_record_valid(pod):
        return f"annotation everynode.io/failures is invalid: {noted.failures}"
    return state_fault(pod)


def _evaluate_deleted_node(plan: Plan, view: NodeView, now: float) -> Assessment:
    """Return the assessment of a node that does not exist but has pods pinned to it.

    Pods that were never bound are deleted; bound ones are left to the pod garbage collector.
    Adopted pods that are pinned to no node wait for a scheduler.
    """
    must_wait = bool(view.writes) or view.retry_at > now
    waiting = [pod for pod in view.pods if not pod.spec.node_name and not pod.terminating]
    if not view.name:
        waiting = []
    steps = () if must_wait else removal_steps(plan, waiting, Cause.VANISHED)
    code = reasons.TERMINATING if waiting else reasons.NOT_ELIGIBLE
    reason = Reason(code, f"node {view.name} does not exist")
    if view.trouble and (waiting or view.writes):
        reason = Reason(reasons.REFUSED, reasons.shorten(view.trouble))
    creating = sum(write.kind is WriteKind.CREATE for write in view.writes)
    return Assessment(
        name=view.name,
        in_scope=False,
        revision="",
        eligibility=_NO_NODE,
        counts=NO_COUNTS._replace(creating=creating, changing=len(view.writes) - creating),
        reason=reason,
        queue=Queue.MAINTAIN if steps else Queue.NONE,
        steps=steps,
        wake_at=view.retry_at if view.retry_at > now else None,
    )
