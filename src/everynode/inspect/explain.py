"""Explanation of one node: should it have a pod, of which revision, and what it waits for.

Values only. Each fact cites its rule in docs/rules.md.
"""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import UpdateStrategy
from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import Pod
from everynode.api.times import human_duration, seconds
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Assessment
from everynode.decide.node.availability import is_ready
from everynode.decide.pods.own_pods import OwnPods
from everynode.inspect.evaluate import Evaluation
from everynode.inspect.fleet import NodeRow, NodeStanding


class Fact(msgspec.Struct, frozen=True):
    """One link of the chain: a word for it, the text, and the rule it comes from."""

    word: str
    text: str
    rule: str = ""  # its anchor in docs/rules.md


class Explanation(msgspec.Struct, frozen=True):
    """Why a node stands as it does."""

    row: NodeRow
    facts: tuple[Fact, ...]
    pods: tuple[Pod, ...]


def explain_node(evaluation: Evaluation, node: str, now: float) -> Explanation | None:
    """Return the chain of facts about a node; None if there is no such node."""
    row = next((each for each in evaluation.fleet.rows if each.node == node), None)
    if row is None:
        return None
    assessment = evaluation.assessments.get(node)
    pods = OwnPods(evaluation.pods.get(node, ())).all
    facts: list[Fact] = []
    if assessment is not None:
        facts += [
            _eligible(assessment),
            explain_scope(evaluation, assessment),
            _revision(evaluation, assessment, row),
        ]
    facts += [_describe_pod(evaluation, pod, now) for pod in pods] or [Fact("pod", "none")]
    facts += _waits(evaluation, row)
    return Explanation(row, tuple(facts), pods)


def _eligible(assessment: Assessment) -> Fact:
    found = assessment.eligibility
    if found.should_run:
        return Fact("eligible", "yes: node selector, affinity and taints let a pod onto it")
    kept = "; a pod that is there may stay" if found.should_continue else ""
    return Fact("eligible", f"no: {found.reason}{kept}", "r4")


def explain_scope(evaluation: Evaluation, assessment: Assessment) -> Fact:
    """Return whether partition, selector and pause let the update reach a node."""
    plan, fleet = evaluation.plan, evaluation.fleet
    strategy = plan.ds.strategy
    if not plan.rolling:
        return Fact("scope", "OnDelete holds no node; it is updated when its pod is deleted", "r2")
    if assessment.in_scope:
        return Fact("scope", "in scope: the update may reach it", "r2")
    node = evaluation.nodes.get(assessment.name)
    if strategy.paused:
        return Fact("scope", "held: the update is paused", "r2")
    if node is not None and not plan.selects(node.metadata.labels):
        return Fact("scope", "held: rollingUpdate.selector does not select it", "r2")
    if strategy.partition.value:
        return Fact("scope", f"held: {_partition(strategy, fleet.counts.desired)}", "r2")
    return Fact("scope", "not in scope: the target wants no pod on it", "r2")


def _partition(strategy: UpdateStrategy, desired: int) -> str:
    amount = strategy.partition
    kept = scaled_value(amount, desired, round_up=False)
    nodes = "1 node" if kept == 1 else f"{kept} nodes"
    return f"partition {amount} keeps {nodes} back, the first by name"


def _revision(evaluation: Evaluation, assessment: Assessment, row: NodeRow) -> Fact:
    fleet = evaluation.fleet
    if not assessment.revision:
        return Fact("revision", "none: the node does not exist")
    number = fleet.revision_number(assessment.revision)
    named = f"{number} ({assessment.revision})" if number is not None else assessment.revision
    if assessment.revision == fleet.target:
        return Fact("revision", f"{named}, the target", "r1")
    why = "that of its pod" if row.revision == assessment.revision else "the one before the target"
    return Fact("revision", f"{named}, {why}: a held node keeps what it has", "r3")


def _describe_pod(evaluation: Evaluation, pod: Pod, now: float) -> Fact:
    number = evaluation.fleet.revision_number(pod.hash)
    parts = [pod.name, f"revision {number if number is not None else pod.hash or 'unknown'}"]
    if pod.terminating:
        parts.append("terminating")
    elif pod.finished:
        parts.append(pod.status.phase)
    else:
        parts.append("Ready" if is_ready(pod) else "not Ready")
    ready = pod.condition("Ready")
    changed = seconds(ready.last_transition_time) if ready is not None else None
    created = seconds(pod.metadata.creation_timestamp)
    if changed is not None and not pod.terminating and not pod.finished:
        parts[-1] += f" for {human_duration(max(0.0, now - changed))}"
    if created is not None:
        parts.append(f"created {human_duration(max(0.0, now - created))} ago")
    restarts = sum(each.restart_count for each in pod.status.container_statuses)
    if restarts:
        parts.append("1 restart" if restarts == 1 else f"{restarts} restarts")
    return Fact("pod", ", ".join(parts))


def _waits(evaluation: Evaluation, row: NodeRow) -> list[Fact]:
    fleet = evaluation.fleet
    facts: list[Fact] = []
    if row.standing is NodeStanding.UPDATED:
        return [Fact("done", "its pod has the target revision and is available")]
    if row.standing is NodeStanding.NOT_ELIGIBLE:
        return [Fact("done", "it should have no pod")]
    if row.standing is not NodeStanding.HELD:
        turn = row.reason == reasons.TURN
        facts.append(
            Fact("waits for", "its turn" if turn else f"{row.reason}: {row.message}", "r4")
        )
    if fleet.refusal and row.revision != fleet.target:
        text = f"no pod is taken: the API server would refuse its successor: {fleet.refusal}"
        facts.append(Fact("refused", text, "r4"))
    if row.place is not None:
        queued = sum(1 for each in fleet.rows if each.place is not None)
        budget = fleet.budget
        what = "have two pods" if budget.field == "maxSurge" else "are down"
        text = (
            f"place {row.place} of {queued}; {budget.used} of {budget.promised} nodes that "
            f"{budget.field} {budget.written} allows {what}"
        )
        facts.append(Fact("queue", text, "r4"))
    return facts
