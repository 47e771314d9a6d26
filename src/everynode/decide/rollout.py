"""Which pod of a node is to be updated, and what that costs (R4, R5, R6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide import reasons
from everynode.decide.actions import Because, PatchPod
from everynode.decide.assessment import Queue
from everynode.decide.inplace import (
    PATIENCE,
    Recreate,
    Wait,
    has_gates_to_open,
    next_step,
    refresh,
)
from everynode.decide.placement import Wish, backoff, creation
from everynode.decide.reasons import Reason
from everynode.decide.situation import Situation
from everynode.decide.steps import Do, Step

_SILENT = Reason(reasons.NODE_NOT_READY, "the node's kubelet is silent: its Ready is Unknown")


def carry_on(node: Situation) -> tuple[Step, ...]:
    """Gates to be opened, and in-place updates begun earlier that have a next step."""
    changing = [pod for pod in node.kept if _may_be_changing(node, pod)]
    return tuple(_carry_on(node, changing)) if changing else ()


def _may_be_changing(node: Situation, pod: Pod) -> bool:
    """Whether there can be anything to carry on: not with every gate open and nothing on record."""
    gated = bool(pod.spec.readiness_gates) and pod.uid not in node.available
    return gated or _is_recorded(pod)


def _is_recorded(pod: Pod) -> bool:
    """Whether the pod carries a record of an in-place update."""
    noted = pod.metadata.annotations
    return bool(noted.inplace_state or noted.inplace_state_old)


def _carry_on(node: Situation, pods: Iterable[Pod]) -> Iterator[Step]:
    for pod in pods:
        if _is_unresizable(node, pod):
            continue
        if not _is_taken(node, pod):
            if _needs_refresh(node, pod):
                yield Step(Do.REFRESH, Because.GATE, pod)
        elif node.reachable and _can_advance(node, pod):
            yield Step(Do.ADVANCE, Because.IN_PLACE, pod)


def _needs_refresh(node: Situation, pod: Pod) -> bool:
    if not _is_recorded(pod):
        return has_gates_to_open(pod)  # the same, without writing the patch
    return refresh(pod, now=node.now) is not None


def _can_advance(node: Situation, pod: Pod) -> bool:
    if pod.hash == node.plan.target_hash and not _is_recorded(pod):
        return has_gates_to_open(pod)  # it was made at the target: nothing else can be missing
    return isinstance(_next(node, pod), PatchPod)


def update(node: Situation) -> Wish:
    """The pod of the node that is to make way for the target, if there is one."""
    failed = _failed_in_place(node)
    old = node.kept_old
    if failed is None and (old is None or not node.in_scope):
        return Wish()
    if not node.plan.updating:
        return Wish()
    if not node.reachable:
        return Wish(reason=_SILENT)
    if failed is not None:
        return _redo(node, *failed)
    assert old is not None
    return _surge(node, old) if node.plan.surging else _replace(node, old)


def _replace(node: Situation, old: Pod) -> Wish:
    """One pod at a time on a node: the old one goes, or is changed in place."""
    if node.pods.leaving:
        # Taken now, its successor would have to wait for the other one as well.
        return Wish(reason=Reason(reasons.TERMINATING, "another of its pods is still going"))
    if not node.eligible.should_run and not _fits_in_place(node, old):
        text = f"{node.eligible.reason}: its pod is kept and cannot be recreated"
        return Wish(reason=Reason(reasons.TAINTED, text))
    return _take(node, old)


def _take(node: Situation, pod: Pod, reason: Reason | None = None) -> Wish:
    step = Step(Do.UPDATE, Because.UPDATE, pod)
    if node.is_ready(pod):
        queue = Queue.TAKE_FREE if node.down else Queue.TAKE
    else:
        queue = Queue.CURE_FREE if node.holding else Queue.CURE
    return Wish(queue, (step,), reason)


def _surge(node: Situation, old: Pod) -> Wish:
    """The target comes up beside the old pod, which goes when it is available (R5).

    An old pod that is not Ready serves nobody: it goes first, so that its node never has two pods
    and the bound of the cure and that of the surge both hold.
    """
    if node.kept_target is not None:
        # Both are there. An old pod that serves nobody need not wait for the other.
        return Wish() if node.is_ready(old) else _take(node, old)
    if not node.eligible.should_run:
        text = f"{node.eligible.reason}: its pod is kept and cannot be recreated"
        return Wish(reason=Reason(reasons.TAINTED, text))
    if node.plan.clashes(old):
        text = "the target needs a host port that the old pod holds; use maxUnavailable instead"
        return Wish(reason=Reason(reasons.SURGE_CANNOT_FIT, text))
    if node.pods.leaving:
        return Wish(reason=Reason(reasons.TERMINATING, "another of its pods is still going"))
    waits = backoff(node)
    if waits is not None:
        return Wish(reason=waits)
    if not node.is_ready(old):
        return _take(node, old)
    step = creation(node, node.plan.target_hash, Because.SURGE)
    return Wish(Queue.SURGE, (step,))


# --- In place ----------------------------------------------------------------------------------


def _is_taken(node: Situation, pod: Pod) -> bool:
    """Whether the pod is on its way to the target in place already."""
    if not node.in_scope:
        return False
    if pod.hash == node.plan.target_hash:
        return True
    return node.plan.in_place and node.plan.updating and node.is_begun(pod)


def _next(node: Situation, pod: Pod) -> PatchPod | Recreate | None:
    """What an in-place update under way needs next; None while it goes its way."""
    plan = node.plan
    step = next_step(pod, plan.revision_of(pod), plan.target, now=node.now)
    if isinstance(step, Wait):
        node.wake(step.until)
        return None
    if isinstance(step, PatchPod) and pod.hash != plan.target_hash:
        condition = pod.condition(keys.INPLACE_UPDATE_READY)
        if condition is not None and condition.last_transition_time is not None:
            node.wake(seconds(condition.last_transition_time) + PATIENCE)
    return step if isinstance(step, PatchPod | Recreate) else None


def _failed_in_place(node: Situation) -> tuple[Pod, str] | None:
    """The pod whose in-place update came to nothing, and why."""
    for pod in node.kept:
        if _may_have_failed(node, pod) and _is_taken(node, pod):
            if _is_unresizable(node, pod):
                return pod, "the API server refuses to resize it"
            step = _next(node, pod)
            if isinstance(step, Recreate):
                return pod, step.reason
    return None


def _may_have_failed(node: Situation, pod: Pod) -> bool:
    """Whether an update was begun: a pod at the target without a record of one was made there."""
    if pod.hash == node.plan.target_hash and not _is_recorded(pod):
        return False
    return _may_be_changing(node, pod)


def _is_unresizable(node: Situation, pod: Pod) -> bool:
    """Whether asking for the resize again is in vain: the node is too small, as servers since 1.36
    say before a kubelet can."""
    return (pod.uid, pod.hash) == node.view.unresizable


def _redo(node: Situation, pod: Pod, why: str) -> Wish:
    if not node.eligible.should_run:
        text = f"{why}, and {node.eligible.reason}: it cannot be recreated"
        return Wish(reason=Reason(reasons.TAINTED, text))
    return _take(node, pod, Reason(reasons.IN_PLACE, f"recreated: {why}"))


def _fits_in_place(node: Situation, old: Pod) -> bool:
    if not node.plan.in_place:
        return False
    plan = node.plan
    step = next_step(old, plan.revision_of(old), plan.target, now=node.now)
    return isinstance(step, PatchPod)
