"""Timeline: notes and commits of a run as text lines, to find the cause of a broken promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import ControllerRevision, Lease, Node, Pod
from everynode.sim.checks.oracle import is_true
from everynode.sim.history.record import Commit

if TYPE_CHECKING:
    from everynode.sim.world import World


def timeline(world: World) -> Iterator[str]:
    """Yield every note and commit in order; small status changes are left out."""
    lines = [(time, 0, number, f"** {text}") for number, (time, text) in enumerate(world.notes)]
    for number, commit in enumerate(world.record.commits):
        text = describe(commit)
        if text:
            lines.append((commit.time, 1, number, f"{commit.actor or 'server':<16} {text}"))
    for time, _, _, text in sorted(lines):
        yield f"{time:10.3f}  {text}"


def describe(commit: Commit) -> str:
    """A short description of a commit; empty if it is not worth a line."""
    match commit.after or commit.before:
        case Pod() as pod:
            return _of_pod(commit, pod)
        case Node() as node:
            return _of_node(commit, node)
        case DaemonSet() as ds:
            return _of_set(commit, ds)
        case ControllerRevision() as revision:
            hash = revision.metadata.labels.get(keys.REVISION_HASH, "")
            return f"revision {hash} {commit.type} number {revision.revision}"
        case Lease() as lease:
            before = commit.before.spec.holder_identity if commit.before else ""
            holder = lease.spec.holder_identity
            return f"lease held by {holder[:8] or 'none'}" if holder != before else ""
    return ""


def _of_pod(commit: Commit, pod: Pod) -> str:
    text = f"pod {pod.name} on {pod.node} ({pod.hash})"
    if commit.after is None:
        return f"{text} gone"
    if commit.before is None:
        return f"{text} created"
    changes = list(_differences(_facts(commit.before), _facts(pod)))
    return f"{text}: {', '.join(changes)}" if changes else ""


def _facts(pod: Pod) -> dict[str, Any]:
    owner = pod.metadata.controller
    facts: dict[str, Any] = {
        "phase": pod.status.phase,
        "ready": is_true(pod, keys.READY),
        "terminating": pod.terminating,
        "hash": pod.hash,
        "owner": owner.uid[:8] if owner else "",
        "images": " ".join(each.image for each in pod.spec.containers),
        "hook": pod.metadata.labels.get(keys.LIFECYCLE_STATE, ""),
        "finalizers": " ".join(pod.metadata.finalizers),
        "app": pod.metadata.labels.get("app", ""),
    }
    for gate in pod.spec.readiness_gates:
        facts[gate.condition_type] = is_true(pod, gate.condition_type)
    return facts


def _of_node(commit: Commit, node: Node) -> str:
    if commit.after is None:
        return f"node {node.name} gone"
    if commit.before is None:
        return f"node {node.name} created"
    changes = list(_differences(_node_facts(commit.before), _node_facts(node)))
    return f"node {node.name}: {', '.join(changes)}" if changes else ""


def _node_facts(node: Node) -> dict[str, Any]:
    taints = " ".join(f"{each.key}:{each.effect}" for each in node.spec.taints)
    return {"ready": node.ready, "taints": taints, "labels": node.metadata.labels}


def _of_set(commit: Commit, ds: DaemonSet) -> str:
    if commit.after is None:
        return f"DaemonSet {ds.name} gone"
    if commit.before is None:
        return f"DaemonSet {ds.name} created"
    before, after = commit.before, ds
    if before.metadata.generation != after.metadata.generation:
        strategy = after.strategy
        return (
            f"DaemonSet {ds.name} generation {after.metadata.generation}: "
            f"maxUnavailable {strategy.max_unavailable.value} maxSurge {strategy.max_surge.value} "
            f"partition {strategy.partition.value} paused {strategy.paused}"
        )
    changes = list(_differences(_status_facts(before), _status_facts(after)))
    return f"status of {ds.name}: {', '.join(changes)}" if changes else ""


def _status_facts(ds: DaemonSet) -> dict[str, Any]:
    status = ds.status
    names = ("observed_generation", "desired", "current", "ready", "updated", "available")
    facts = {name: getattr(status, name) for name in names}
    facts["target"] = status.update_revision
    facts |= {each.type: f"{each.status} {each.reason}" for each in status.conditions}
    return facts


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name, value in after.items():
        if before.get(name) != value:
            yield f"{name} {value}"
