"""What one node is, needs and waits for: the unit of every decision."""

from __future__ import annotations

from typing import Final

from everynode.api.objects import Pod
from everynode.decide import reasons
from everynode.decide.actions import Because
from everynode.decide.assessment import EMPTY, Assessment, Queue, Survey
from everynode.decide.eligibility import Eligibility, judge
from everynode.decide.failures import is_readable
from everynode.decide.inplace_state import state_fault
from everynode.decide.placement import Wish, empty, fill, going, tidy
from everynode.decide.plan import Plan
from everynode.decide.reasons import Reason, explain_pod
from everynode.decide.rollout import carry_on, update
from everynode.decide.situation import Situation, came_at, is_coming
from everynode.decide.steps import remove_all
from everynode.decide.view import NodeView, Pending

_NO_NODE: Final = Eligibility(
    should_run=False, should_continue=False, reason="the node does not exist"
)
# What is normal for a while and a reason to look after that.
_LATE: Final = {
    reasons.STARTING: (reasons.NOT_STARTING, 300.0),
    reasons.IN_PLACE: (reasons.IN_PLACE_LATE, 600.0),
}
_TURN: Final = Reason(reasons.TURN, "waits for its turn")
_WRITING: Final = Wish(reason=Reason(reasons.WRITING, "what we wrote last is not seen yet"))


def survey(plan: Plan, view: NodeView) -> Survey:
    """How a node stands towards the target (R2); own creates count as if they were there."""
    if view.node is None:
        return Survey(holds_target=False, selected=False, eligibility=_NO_NODE)
    target = plan.target_hash
    holds_target = bool(view.writes) and is_coming(view, target)
    for pod in view.pods:
        holds_target = holds_target or plan.carries(pod)
    return Survey(
        holds_target=holds_target,
        selected=plan.selects(view.node.metadata.labels),
        eligibility=judge(plan.facts[target], view.node),
    )


def assess(
    plan: Plan,
    view: NodeView,
    *,
    in_scope: bool,
    now: float,
    released: bool = True,
    surveyed: Survey | None = None,
) -> Assessment:
    """Judge one node; `released` says whether the scope lets the target onto it, paused or not."""
    if view.node is None:
        return _assess_vanished(plan, view, now)
    node = Situation(
        plan,
        view,
        view.node,
        surveyed=surveyed or survey(plan, view),
        in_scope=in_scope,
        released=released,
        now=now,
    )
    wish = _wish(node)
    reason = _explain(node, wish)
    queue, steps = (Queue.NONE, ()) if node.busy else (wish.queue, wish.steps)
    node.wake(view.retry_at)
    return Assessment(
        view.name,
        in_scope,
        node.life,
        node.surveyed.eligibility,
        node.profile(clashing=reason.code == reasons.SURGE_CANNOT_FIT),
        reason,
        queue,
        steps,
        node.wake_at,
    )


def _wish(node: Situation) -> Wish:
    """What the node wants now: first things put in order, then what is missing, then the update."""
    if node.view.writes:
        return _WRITING  # whatever it wanted, it would have to wait
    if not node.eligible.should_continue:
        return empty(node)
    steps = tidy(node) + carry_on(node) if node.pods.all else ()
    following = update(node) if node.pods.staying else fill(node)
    return Wish(Queue.WORK, steps, following.reason) if steps else following


def _explain(node: Situation, wish: Wish) -> Reason:
    view = node.view
    if view.trouble and (wish.queue or view.writes):  # else it is over, whatever it was
        return Reason(reasons.REFUSED, reasons.shorten(view.trouble))
    if wish.reason is not None:
        return wish.reason
    pod = node.kept_target or node.kept_old
    assert pod is not None  # a node without one that stays has said above what it waits for
    reason = _explain_stay(node, pod)
    fault = _fault(pod)
    return Reason(reason.code, f"{reason.text}; {fault}".strip("; ")) if fault else reason


def _explain_stay(node: Situation, pod: Pod) -> Reason:
    """What to say of a node that has a pod which stays for now."""
    plan = node.plan
    if pod.uid not in node.available:
        reason = explain_pod(pod, node.node)
        if reason.code in _LATE:
            code, patience = _LATE[reason.code]
            late = came_at(pod) + plan.min_ready_seconds + patience
            node.wake(late)
            return reason if node.now < late else Reason(code, reason.text)
        return reason
    if pod is node.kept_target:
        if len(node.pods.all) == 1:
            return reasons.NOTHING
        return going(node) or Reason(reasons.REPLACING, "another of its pods is to go")
    if not node.in_scope:
        return Reason(reasons.HELD, f"held at revision {node.life}")
    if not plan.rolling:
        return Reason(reasons.ON_DELETE, "updated when its pod is deleted")
    return _TURN


def _fault(pod: Pod) -> str:
    """What is wrong with our notes on the pod; it is ignored and stops nothing."""
    noted = pod.metadata.annotations
    if not (noted.failures or noted.inplace_state or noted.inplace_state_old):
        return ""
    if not is_readable(pod):
        return (
            f"annotation everynode.io/failures makes no sense: {pod.metadata.annotations.failures}"
        )
    return state_fault(pod)


def _assess_vanished(plan: Plan, view: NodeView, now: float) -> Assessment:
    """Pods that point at a node which does not exist: those never scheduled can only be deleted.

    Pods that were bound are left to the garbage collector of pods. Adopted ones that point at no
    node at all wait for a scheduler: where they belong shows when they are bound.
    """
    idle = bool(view.writes) or view.retry_at > now
    waiting = [pod for pod in view.pods if not pod.spec.node_name and not pod.terminating]
    if not view.name:
        waiting = []
    steps = () if idle else remove_all(plan, waiting, Because.VANISHED)
    code = reasons.TERMINATING if waiting else reasons.NOT_ELIGIBLE
    reason = Reason(code, f"node {view.name} does not exist")
    if view.trouble and (waiting or view.writes):
        reason = Reason(reasons.REFUSED, reasons.shorten(view.trouble))
    creating = sum(write.kind is Pending.CREATE for write in view.writes)
    return Assessment(
        name=view.name,
        in_scope=False,
        revision="",
        eligibility=_NO_NODE,
        profile=EMPTY._replace(creating=creating, changing=len(view.writes) - creating),
        reason=reason,
        queue=Queue.WORK if steps else Queue.NONE,
        steps=steps,
        wake_at=view.retry_at if view.retry_at > now else None,
    )
