"""Withdrawn tolerations (R4): pods that came by a toleration which the target no longer has."""

from __future__ import annotations

from collections.abc import Collection

from everynode.api.objects import Pod
from everynode.sim.checks.oracle import Oracle, node_fit


def is_withdrawn(oracle: Oracle, pod: Pod) -> bool:
    """Whether the target no longer tolerates a taint that the pod's revision tolerates."""
    node, template = oracle.cluster.nodes.get(pod.node), oracle.templates.get(pod.hash)
    if node is None or template is None or oracle.at_target(pod):
        return False
    before, after = node_fit(template), node_fit(oracle.ds.template)
    return any(before.tolerates(each) and not after.tolerates(each) for each in node.spec.taints)


def withdrawing(oracle: Oracle, disrupted: Collection[str]) -> list[str]:
    """Nodes that get no other pod, whose pod goes because its toleration was withdrawn.

    A pod that has ended went by itself, a misplaced one would go without an update, and a node that
    is left alone is not counted.
    """
    target = node_fit(oracle.ds.template)
    return sorted(
        node
        for node in oracle.scope - oracle.desired_nodes
        if not oracle.is_silent(node)
        and target.may_stay(oracle.cluster.nodes[node])
        and any(is_withdrawn(oracle, pod) for pod in oracle.pods_on(node) if not pod.finished)
        and all(pod.uid in disrupted for pod in oracle.staying(node))
    )
