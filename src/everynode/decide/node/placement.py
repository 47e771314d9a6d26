"""Placement: pods that are missing, duplicate, misplaced or finished, independent of the rollout.

Functions that explain a wait return its reason and when it ends without an event (`Waiting`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from everynode.api.objects import Pod
from everynode.api.times import format_time, seconds
from everynode.decide.actions import Cause
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue, earliest
from everynode.decide.node.eligibility import host_ports_conflict
from everynode.decide.node.failures import DELAY, count_failures, ended_at, replace_at
from everynode.decide.node.maintenance import explain_set_aside, is_shutting_down, shutdown_delay
from everynode.decide.node.node_state import NodeState
from everynode.decide.node.reasons import Reason
from everynode.decide.node.steps import Step, StepKind, removal_steps

# Seconds beyond its own grace period after which a terminating pod is reported as stuck.
_TERMINATION_TIMEOUT: Final = 60.0


class NodeIntent(NamedTuple):
    """The steps a node needs, the queue it waits in, the reason, and when that changes."""

    queue: Queue = Queue.NONE
    steps: tuple[Step, ...] = ()
    reason: Reason | None = None
    wake_at: float | None = None


class Waiting(NamedTuple):
    """What a node waits for, and when the wait ends without an event, if that is known."""

    reason: Reason
    until: float | None = None


def remove_all_pods(node: NodeState) -> NodeIntent:
    """Remove every pod of a node that must not keep any."""
    pods = node.pods
    removed = [*pods.active, *pods.preparing, *pods.finished]
    steps = removal_steps(node.plan, removed, Cause.MISPLACED)
    queue = Queue.MAINTAIN if steps else Queue.NONE
    why = node.eligible.reason
    if not removed and not pods.terminating:
        return NodeIntent(queue, steps, Reason(reasons.NOT_ELIGIBLE, why))
    leaving = explain_leaving(node)
    if leaving is not None:
        return NodeIntent(queue, steps, leaving.reason, leaving.until)
    return NodeIntent(queue, steps, Reason(reasons.TERMINATING, f"its pod is removed: {why}"))


def clean_up(node: NodeState) -> tuple[Step, ...]:
    """Delete pods that are duplicate, finished and replaced, or released by their hook."""
    return tuple(_clean_up_steps(node)) if len(node.pods.all) > 1 or not node.pods.active else ()


def _clean_up_steps(node: NodeState) -> Iterator[Step]:
    plan, pods = node.plan, node.pods
    if pods.preparing:
        yield from removal_steps(plan, pods.preparing, Cause.HOOK_DONE)
    if len(pods.active) > 1:
        extra = [pod for pod in pods.active if pod not in node.kept]
        yield from removal_steps(plan, extra, Cause.DUPLICATE)
        old, target = node.kept_old, node.kept_target
        if old is not None and target is not None and target.uid in node.up and node.proven:
            yield from removal_steps(plan, (old,), Cause.SURGED)
    if pods.finished:
        replaced = [
            pod for pod in pods.finished if _is_replaced(node, at_target=plan.is_at_target(pod))
        ]
        yield from removal_steps(plan, replaced, Cause.FINISHED)


def _is_replaced(node: NodeState, *, at_target: bool) -> bool:
    """Whether a finished pod has a successor, or gets none.

    A finished surge pod beside an old one is kept until the next surge pod exists, because the
    back-off is read from it.
    """
    if not node.pods.active:
        # On a node that gets no other pod, it is deleted when its back-off ends.
        return not node.eligible.should_run and explain_backoff(node) is None
    return bool(node.target_pods) or not (node.plan.surging and node.in_scope and at_target)


def explain_backoff(node: NodeState) -> Waiting | None:
    """Return why the next pod waits after failures (R7); None if it need not wait."""
    finished = node.pods.all_finished
    if not finished:
        return None
    due = max(_replace_at(node, pod) for pod in finished)
    if due <= node.now:
        return None
    count = failure_count(node)
    times = "once" if count == 1 else f"{count} times in a row"
    # A broken clock may write a time that is too late to be formatted as a date.
    shown = format_time(min(due, node.now + DELAY.longest) + 0.999)
    text = f"its pod ended {times}; the next one is created at {shown}"
    return Waiting(Reason(reasons.BACKOFF, text), due)


def _replace_at(node: NodeState, pod: Pod) -> float:
    """Return when a finished pod may be replaced; later on a node that shuts down (R7)."""
    due = replace_at(pod, node.plan.target_hash, node.view.ahead)
    delay = shutdown_delay(pod, node.node)
    return max(due, ended_at(pod, node.view.ahead) + delay) if delay else due


def failure_count(node: NodeState) -> int:
    """Return how many pods in a row have failed here."""
    target, ahead = node.plan.target_hash, node.view.ahead
    return max((count_failures(pod, target, ahead) for pod in node.pods.all_finished), default=0)


def create_step(node: NodeState, revision: str, cause: Cause) -> Step:
    """Return the step that creates a pod, with the pods it replaces: its name depends on them."""
    replaced = (*node.pods.all_finished, *node.pods.leaving)
    return Step(
        StepKind.CREATE,
        cause,
        revision=revision,
        replaced=tuple(sorted(pod.uid for pod in replaced)),
        failures=failure_count(node),
        sick=revision == node.plan.target_hash and _replaces_sick(node),
    )


def _replaces_sick(node: NodeState) -> bool:
    """Whether the next pod replaces a sick one, or one that failed after it had done so."""
    if node.view.emptied_sick:
        return True
    noted = [pod.metadata.annotations.replaced_sick for pod in node.pods.all_finished]
    return node.plan.target_hash in noted


def create_missing(node: NodeState) -> NodeIntent:
    """Create the pod of a node that has no active one.

    In a progressive first installation (R8) a node gets no pod while selector or partition
    exclude it. A pause excludes no node: it applies to existing pods.
    """
    plan, pods = node.plan, node.pods
    if not node.eligible.should_run:
        return _explain_empty(node)
    if plan.ds.progressive and plan.first_install and not node.released:
        text = "no pod is created here while the partition or the selector withholds the node"
        return NodeIntent(reason=Reason(reasons.WITHHELD, text))
    if is_shutting_down(node.node):
        return NodeIntent(reason=explain_set_aside(node.node))
    backoff = explain_backoff(node)
    if backoff is not None:
        return NodeIntent(reason=backoff.reason, wake_at=backoff.until)
    if pods.leaving:
        return _create_beside_leaving(node)
    cause = Cause.REPLACE_FINISHED if pods.finished else Cause.MISSING
    code = reasons.REPLACING if pods.finished else reasons.MISSING
    text = "its pod ended and is replaced" if pods.finished else "its pod is to be created"
    reason = explain_set_aside(node.node) if node.set_aside else Reason(code, text)
    return NodeIntent(Queue.CREATE, (create_step(node, node.node_revision, cause),), reason)


def _explain_empty(node: NodeState) -> NodeIntent:
    """Explain a node that gets no pod and may keep the pods that are still there."""
    leaving = explain_leaving(node)
    # Finished pods are deleted when the back-off ends.
    backoff = explain_backoff(node) if leaving is None or node.pods.finished else None
    waiting = leaving or backoff or Waiting(Reason(reasons.NOT_ELIGIBLE, node.eligible.reason))
    wake_at = earliest(node.now, waiting.until, backoff.until if backoff else None)
    return NodeIntent(reason=waiting.reason, wake_at=wake_at)


def _create_beside_leaving(node: NodeState) -> NodeIntent:
    """Create a pod beside one that terminates: only with surge, if it fits, and never a third."""
    plan, pods = node.plan, node.pods
    leaving = explain_leaving(node)
    assert leaving is not None
    waits = NodeIntent(reason=leaving.reason, wake_at=leaving.until)
    wanted = plan.constraints[node.node_revision]
    taken = any(
        host_ports_conflict(wanted, plan.constraints.get(pod.hash, wanted)) for pod in pods.leaving
    )
    if not plan.surging or node.set_aside or taken or len(pods.leaving) > 1:
        return waits
    step = create_step(node, node.node_revision, Cause.MISSING)
    return waits._replace(queue=Queue.CREATE_BESIDE_TERMINATING, steps=(step,))


def explain_leaving(node: NodeState) -> Waiting | None:
    """Return what a node with a leaving pod waits for; None if no pod is leaving."""
    pods = node.pods
    if not pods.leaving:
        return None
    if node.set_aside:
        return Waiting(explain_set_aside(node.node))
    if not pods.terminating:
        name = pods.preparing[0].name
        return Waiting(
            Reason(reasons.HOOK, f"pod {name} is PreparingDelete and waits for its hook")
        )
    name = pods.terminating[0].name
    deleted_at = max(seconds(pod.metadata.deletion_timestamp) or 0.0 for pod in pods.terminating)
    until = deleted_at + _TERMINATION_TIMEOUT
    if until <= node.now:
        text = f"pod {name} should have ended long ago and still terminates"
        return Waiting(Reason(reasons.STUCK, text))
    return Waiting(Reason(reasons.TERMINATING, f"pod {name} terminates"), until)
