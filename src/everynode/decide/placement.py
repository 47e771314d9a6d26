"""What puts a node in order, whatever the rollout does: pods missing, extra, misplaced, ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from everynode.api.times import format_time, seconds
from everynode.decide import reasons
from everynode.decide.actions import Because
from everynode.decide.assessment import Queue
from everynode.decide.eligibility import ports_clash
from everynode.decide.failures import count_failures, due_at
from everynode.decide.reasons import Reason
from everynode.decide.situation import Situation
from everynode.decide.steps import Do, Step, remove_all

# A pod is given this long beyond its own grace period before it is said to be stuck.
_LATE: Final = 60.0


class Wish(NamedTuple):
    """What a node wants, where it waits for it, and why."""

    queue: Queue = Queue.NONE
    steps: tuple[Step, ...] = ()
    reason: Reason | None = None


def empty(node: Situation) -> Wish:
    """The node must not keep any pod."""
    pods = node.pods
    removed = [*pods.staying, *pods.preparing, *pods.finished]
    steps = remove_all(node.plan, removed, Because.MISPLACED)
    why = node.eligible.reason
    if removed or pods.terminating:
        reason = going(node) or Reason(reasons.TERMINATING, f"its pod is removed: {why}")
    else:
        reason = Reason(reasons.NOT_ELIGIBLE, why)
    return Wish(Queue.WORK if steps else Queue.NONE, steps, reason)


def tidy(node: Situation) -> tuple[Step, ...]:
    """Pods that are one too many, replaced or released by their hook."""
    return tuple(_tidy(node)) if len(node.pods.all) > 1 or not node.pods.staying else ()


def _tidy(node: Situation) -> Iterator[Step]:
    plan, pods = node.plan, node.pods
    if pods.preparing:
        yield from remove_all(plan, pods.preparing, Because.HOOK_DONE)
    if len(pods.staying) > 1:
        extra = [pod for pod in pods.staying if pod not in node.kept]
        yield from remove_all(plan, extra, Because.DUPLICATE)
        old, target = node.kept_old, node.kept_target
        if old is not None and target is not None and target.uid in node.up:
            yield from remove_all(plan, (old,), Because.SURGED)
    if pods.finished:
        replaced = [pod for pod in pods.finished if _is_replaced(node, at_target=plan.carries(pod))]
        yield from remove_all(plan, replaced, Because.FINISHED)


def _is_replaced(node: Situation, *, at_target: bool) -> bool:
    """Whether an ended pod has its successor, or needs none.

    Beside an old pod, an ended surge pod is kept for its back-off until the next one is there.
    """
    if not node.pods.staying:
        # Nothing can follow it here, so that the back-off is all it is kept for.
        return not node.eligible.should_run and backoff(node) is None
    return bool(node.targets) or not (node.plan.surging and node.in_scope and at_target)


def backoff(node: Situation) -> Reason | None:
    """Why the next pod must wait because others have failed before it; None if it need not."""
    ended = node.pods.ended
    if not ended:
        return None
    due = max(due_at(pod, node.plan.target_hash) for pod in ended)
    if due <= node.now:
        return None
    node.wake(due)
    count = failures(node)
    times = "once" if count == 1 else f"{count} times in a row"
    text = f"its pod ended {times}; the next one is created at {format_time(due + 0.999)}"
    return Reason(reasons.BACKOFF, text)


def failures(node: Situation) -> int:
    """How many pods in a row have failed here."""
    target = node.plan.target_hash
    return max((count_failures(pod, target) for pod in node.pods.ended), default=0)


def creation(node: Situation, revision: str, because: Because) -> Step:
    """The step that creates a pod here, knowing the pods it comes after."""
    behind = (*node.pods.ended, *node.pods.leaving)
    return Step(
        Do.CREATE,
        because,
        revision=revision,
        replaced=tuple(sorted(pod.uid for pod in behind)),
        failures=failures(node),
    )


def fill(node: Situation) -> Wish:
    """The node has no pod that stays.

    In a progressive first installation (R8) it stays empty while selector and partition withhold
    it; a pause withholds nothing, as it only concerns pods that are there.
    """
    plan, pods = node.plan, node.pods
    if not node.eligible.should_run:
        unfit = Reason(reasons.NOT_ELIGIBLE, node.eligible.reason)
        return Wish(reason=going(node) or backoff(node) or unfit)
    if plan.ds.progressive and plan.first and not node.released:
        text = "no pod is created here while the partition or the selector withholds the node"
        return Wish(reason=Reason(reasons.WITHHELD, text))
    waits = backoff(node)
    if waits is not None:
        return Wish(reason=waits)
    if pods.leaving:
        return _fill_beside(node)
    because = Because.REPLACE_FINISHED if pods.finished else Because.MISSING
    code = reasons.REPLACING if pods.finished else reasons.MISSING
    text = "its pod ended and is replaced" if pods.finished else "its pod is to be created"
    if not node.reachable:
        code, text = reasons.NODE_NOT_READY, "the node's kubelet is silent: its Ready is Unknown"
    return Wish(Queue.CREATE, (creation(node, node.life, because),), Reason(code, text))


def _fill_beside(node: Situation) -> Wish:
    """With surge a pod may come beside one that is leaving, if there is a place; never a third."""
    plan, pods = node.plan, node.pods
    wanted = plan.facts[node.life]
    taken = any(ports_clash(wanted, plan.facts.get(pod.hash, wanted)) for pod in pods.leaving)
    if not plan.surging or not node.reachable or taken or len(pods.leaving) > 1:
        return Wish(reason=going(node))
    step = creation(node, node.life, Because.MISSING)
    return Wish(Queue.BESIDE, (step,), going(node))


def going(node: Situation) -> Reason | None:
    """What a node waits for whose pods are on their way out."""
    pods = node.pods
    if not pods.leaving:
        return None
    if not node.reachable:
        return Reason(reasons.NODE_NOT_READY, "the node's kubelet is silent: its Ready is Unknown")
    if not pods.terminating:
        name = pods.preparing[0].name
        return Reason(reasons.HOOK, f"pod {name} is PreparingDelete and waits for its hook")
    name = pods.terminating[0].name
    until = max(seconds(pod.metadata.deletion_timestamp) or 0.0 for pod in pods.terminating) + _LATE
    if until <= node.now:
        return Reason(reasons.STUCK, f"pod {name} should have ended long ago and still terminates")
    node.wake(until)
    return Reason(reasons.TERMINATING, f"pod {name} terminates")
