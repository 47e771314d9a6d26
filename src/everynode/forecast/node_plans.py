"""Node plans: what a rollout would do on each node, in which order, and why. Values only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from everynode.api.objects import Pod
from everynode.decide.inplace.diff import InPlaceChange, Recreate, classify
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Assessment
from everynode.decide.plan import Plan
from everynode.forecast.recording import NodeState, Recording
from everynode.inspect.evaluate import Evaluation
from everynode.inspect.explain import explain_scope
from everynode.inspect.fleet import NodeRow, NodeStanding


class NodeAction(enum.StrEnum):
    """What happens on a node."""

    IN_PLACE = "in-place"  # its pod stays and is changed
    RECREATE = "recreate"  # its pod is replaced by another one
    CREATE = "create"  # it has no pod and gets one
    REMOVE = "remove"  # its pod goes, and none follows
    HELD = "held"  # partition, selector, a pause or OnDelete keep it as it is
    NOT_ELIGIBLE = "not-eligible"  # has no pod and gets none
    CURRENT = "current"  # has the new version already
    WAITS = "waits"  # the update may reach it, and did not until the end


_ACTING: Final = frozenset(
    (NodeAction.IN_PLACE, NodeAction.RECREATE, NodeAction.CREATE, NodeAction.REMOVE)
)


class Touched(msgspec.Struct, frozen=True):
    """When a node's pod was first created, taken or changed."""

    order: int  # 1 is first
    seconds: float


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a plan."""

    node: str
    action: NodeAction
    reason: str
    order: int | None = None  # its place among the nodes on which something happens
    begins: float | None = None  # seconds after the change
    available: float | None = None  # seconds after the change; None if it does not become so
    stuck: bool = False  # its pod has the new version and does not become available


def plan_nodes(
    before: Evaluation,
    after: Evaluation,
    pods: Mapping[str, Pod],
    *,
    recording: Recording,
    touched: Mapping[str, Touched],
) -> tuple[NodePlan, ...]:
    """Return the plan of each node, by name; `pods` are those of the beginning, by uid."""
    available = _became_available(recording)
    rows = {row.node: row for row in after.fleet.rows}
    found = []
    for name, assessment in sorted(before.assessments.items()):
        row, touch = rows[name], touched.get(name)
        action, reason = _action(before, after, assessment, row, pods)
        acts = action in _ACTING and touch is not None
        found.append(
            NodePlan(
                node=name,
                action=action,
                reason=reason,
                order=touch.order if touch is not None and acts else None,
                begins=touch.seconds if touch is not None and acts else None,
                available=available.get(name) if acts else None,
                stuck=acts and action is not NodeAction.REMOVE and name not in available,
            )
        )
    return tuple(found)


def _became_available(recording: Recording) -> dict[str, float]:
    """Return when each node that has the new version at the end became available with it."""
    found: dict[str, float] = {}
    for change in recording.changes:
        if change.state is NodeState.UPDATED:
            found[change.node] = change.seconds
        else:
            found.pop(change.node, None)
    return found


def _action(
    before: Evaluation,
    after: Evaluation,
    assessment: Assessment,
    row: NodeRow,
    pods: Mapping[str, Pod],
) -> tuple[NodeAction, str]:
    """Return what happens on a node and why, by its pods before and after."""
    here = after.pods.get(assessment.name, ())
    at_target = [pod for pod in here if after.plan.is_at_target(pod)]
    first = [pod for pod in before.pods.get(assessment.name, ()) if not pod.finished]
    if at_target:
        was = pods.get(at_target[0].uid)
        if was is None and first:
            return NodeAction.RECREATE, _why_recreated(before.plan, first[0])
        if was is None:
            return NodeAction.CREATE, "it should have a pod and has none"
        if not before.plan.is_at_target(was):
            return NodeAction.IN_PLACE, _what_changes(before.plan, was)
        return NodeAction.CURRENT, row.message or "it has the new version already"
    if not assessment.eligibility.should_run:
        if first and not here:
            return NodeAction.REMOVE, assessment.eligibility.reason
        stays = "; its pod stays" if here else ""
        return NodeAction.NOT_ELIGIBLE, f"{assessment.eligibility.reason}{stays}"
    return _left_out(after, row)


def _left_out(after: Evaluation, row: NodeRow) -> tuple[NodeAction, str]:
    """Return why a node that should have a pod does not get the new version."""
    if row.reason == reasons.ON_DELETE:
        return NodeAction.HELD, "OnDelete: it is updated when its pod is deleted"
    if row.standing is NodeStanding.HELD:
        held = explain_scope(after, after.assessments[row.node])
        return NodeAction.HELD, held.text.removeprefix("held: ")
    if row.reason == reasons.TURN:
        return NodeAction.WAITS, "its turn does not come: the nodes before it use up the budget"
    return NodeAction.WAITS, row.message or row.reason


def _why_recreated(plan: Plan, pod: Pod) -> str:
    if plan.surging:
        return "with maxSurge a new pod is started beside the old one"
    if not plan.in_place:
        return "the strategy replaces pods"
    step = plan.next_in_place_step(pod, now=0.0, ahead=())
    return step.reason if isinstance(step, Recreate) else "its update in place was given up"


def _what_changes(plan: Plan, pod: Pod) -> str:
    """Return what an update in place changes in a pod."""
    old = plan.revision_of(pod)
    if old is None:
        return "its pod is changed"
    change = classify(old.template, plan.target.template)
    if not isinstance(change, InPlaceChange):
        return "its pod is changed"
    parts = []
    if change.images:
        parts.append(f"the image of {', '.join(sorted(change.images))}")
    if change.resources:
        parts.append(f"the resources of {', '.join(sorted(change.resources))}")
    if change.labels or change.annotations or change.new_finalizers or change.old_finalizers:
        parts.append("metadata")
    return f"only {' and '.join(parts)} changes" if parts else "only its revision changes"
