"""Rows: how each node stands, from its assessment and its pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Node, NodeMeta, Pod
from everynode.api.times import seconds
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Assessment, Queue
from everynode.decide.node.availability import available_at, is_ready
from everynode.decide.node.reasons import explain_pod
from everynode.decide.plan import Plan
from everynode.decide.pods.own_pods import OwnPods
from everynode.inspect.fleet import NodeRow, NodeStanding

# The order in which the queues are served; True: from the last node name to the first (R4).
_SERVED: Final = {
    Queue.CREATE: False,
    Queue.MAINTAIN: False,
    Queue.RECREATE_NO_BUDGET: True,
    Queue.REPLACE_UNREADY_NO_BUDGET: True,
    Queue.REPLACE_UNREADY: True,
    Queue.UPDATE_READY_NO_BUDGET: True,
    Queue.UPDATE_READY: True,
    Queue.UPDATE_READY_LAST: True,
    Queue.END_SURGE: True,
    Queue.CREATE_BESIDE_TERMINATING: False,
    Queue.SURGE: True,
    Queue.SURGE_LAST: True,
}
_NODES_UNKNOWN: Final = "the nodes cannot be listed, so that it is not known what it waits for"


class RowCache:
    """Builds the rows of one DaemonSet again and again; a row is built anew if its node changed.

    A node is assessed anew when it or one of its pods has changed.
    """

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._known: dict[str, tuple[Assessment, NodeRow]] = {}

    def build(
        self,
        plan: Plan,
        nodes: Mapping[str, Node],
        pods: Mapping[str, tuple[Pod, ...]],
        assessments: Mapping[str, Assessment],
        now: float,
    ) -> tuple[NodeRow, ...]:
        """Return a row for each assessment, in their order, which is that of the names.

        Without any, there is one for each node with a pod.
        """
        if not assessments:
            self._known.clear()
            return tuple([_row_without_node(plan, name, pods[name], now) for name in sorted(pods)])
        if plan != self._plan:
            self._known.clear()
        self._plan, known = plan, self._known
        places = _places(assessments.values())
        rows = []
        for name, assessment in assessments.items():
            place, found = places.get(name), known.get(name)
            if found is None or found[0] is not assessment:
                row = _row(plan, assessment, nodes.get(name), pods.get(name, ()), place)
            elif found[1].place != place:
                row = msgspec.structs.replace(found[1], place=place)
            else:
                rows.append(found[1])
                continue
            known[name] = assessment, row
            rows.append(row)
        for name in known.keys() - assessments.keys() if len(known) > len(rows) else ():
            del known[name]
        return tuple(rows)


def _row(
    plan: Plan, assessment: Assessment, node: Node | None, pods: tuple[Pod, ...], place: int | None
) -> NodeRow:
    pod = _shown_pod(plan, pods)
    standing = _standing(assessment)
    return NodeRow(
        node=assessment.name,
        standing=standing,
        reason=assessment.reason.code,
        message=assessment.reason.text,
        revision=revision_of(plan, pod),
        wanted=assessment.revision,
        pod=pod.name if pod is not None else "",
        ready=pod is not None and is_ready(pod),
        since=_since(pod),
        place=place,
        in_scope=assessment.in_scope,
        labels=node.metadata.labels if node is not None else {},
    )


def _row_without_node(plan: Plan, name: str, pods: tuple[Pod, ...], now: float) -> NodeRow:
    """Return the row of a node that the reader has no right to read."""
    pod = _shown_pod(plan, pods)
    assert pod is not None
    at = available_at(pod, plan.min_ready_seconds)
    at_target = plan.is_at_target(pod)
    available = at is not None and at <= now and not pod.terminating
    reason = reasons.NO_REASON
    if not available:
        reason = explain_pod(pod, Node(NodeMeta(name=name)))
        progressing = pod.terminating or reason.code in reasons.PROGRESSING_CODES
        standing = NodeStanding.UPDATING if progressing else NodeStanding.WAITING
    else:
        standing = NodeStanding.UPDATED if at_target else NodeStanding.QUEUED
    return NodeRow(
        node=name,
        standing=standing,
        reason=reason.code,
        message=reason.text or ("" if at_target else _NODES_UNKNOWN),
        revision=revision_of(plan, pod),
        pod=pod.name,
        ready=is_ready(pod),
        since=_since(pod),
    )


def _standing(assessment: Assessment) -> NodeStanding:
    code = assessment.reason.code
    if code == reasons.DONE:
        return NodeStanding.UPDATED
    if code in (reasons.HELD, reasons.WITHHELD):
        return NodeStanding.HELD
    if code in (reasons.TURN, reasons.ON_DELETE):
        return NodeStanding.QUEUED
    if code == reasons.NOT_ELIGIBLE:
        return NodeStanding.NOT_ELIGIBLE
    return NodeStanding.UPDATING if code in reasons.PROGRESSING_CODES else NodeStanding.WAITING


def _shown_pod(plan: Plan, pods: tuple[Pod, ...]) -> Pod | None:
    """Return the pod that stands for a node: one that stays, of the target if there are two."""
    own = OwnPods(pods)
    for group in (own.active, own.preparing, own.terminating, own.finished):
        if group:
            return next((pod for pod in group if plan.is_at_target(pod)), group[0])
    return own.all[0] if own.all else None


def revision_of(plan: Plan, pod: Pod | None) -> str:
    """Return the hash of the revision that a pod is at; empty without a pod."""
    if pod is None:
        return ""
    return plan.target_hash if plan.is_at_target(pod) else pod.hash


def _since(pod: Pod | None) -> float | None:
    """Return when the pod became Ready or ceased to be; else when it was created."""
    if pod is None:
        return None
    ready = pod.condition(keys.READY)
    moment = ready.last_transition_time if ready is not None else None
    return seconds(moment or pod.metadata.creation_timestamp)


def _places(assessments: Iterable[Assessment]) -> dict[str, int]:
    """Return the place of every queued node, in the order in which the queues are served (R4)."""
    queues: defaultdict[Queue, list[str]] = defaultdict(list)
    none = Queue.NONE
    for each in assessments:
        if each.queue is not none:
            queues[each.queue].append(each.name)
    ordered = [
        name
        for queue, last_first in _SERVED.items()
        for name in sorted(queues[queue], reverse=last_first)
    ]
    return {name: place for place, name in enumerate(ordered, 1)}
