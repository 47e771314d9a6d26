"""Preemption: which pods of lower priority to delete so that a pod fits on a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everynode.api.times import seconds
from everynode.components.scheduler.filters import NodeInfo, PodInfo
from everynode.components.scheduler.resources import fit_errors


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A node, and the pods to delete from it."""

    node: str
    victims: tuple[PodInfo, ...]

    def cost(self) -> tuple[int, int, int, float, str]:
        """The sort key of candidates; the lowest is chosen.

        In this order: highest priority among the victims, sum of their priorities, their number,
        the age of the oldest of the highest priority (the youngest is chosen), the node's name.
        """
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        created = [
            seconds(victim.pod.metadata.creation_timestamp) or 0.0
            for victim in self.victims
            if victim.priority == highest
        ]
        return highest, sum(priorities), len(priorities), -min(created), self.node


def choose_candidate(pod: PodInfo, nodes: Iterable[NodeInfo]) -> PreemptionCandidate | None:
    """The candidate of the lowest cost, if there is one."""
    found = [candidate for node in nodes if (candidate := candidate_on(pod, node)) is not None]
    return min(found, key=PreemptionCandidate.cost) if found else None


def candidate_on(pod: PodInfo, node: NodeInfo) -> PreemptionCandidate | None:
    """The pods of lower priority to delete from a node, as few as possible, so that a pod fits.

    As in kube-scheduler: remove all of them, then add back one after the other as long as the pod
    still fits. What cannot be added back is a victim.
    """
    if node.api_object is None:
        return None
    lower = [other for other in node.pods.values() if other.priority < pod.priority]
    if not lower:
        return None
    allocated = node.allocated_for(pod).copy()
    for other in lower:
        allocated.remove(other.requests)
    if fit_errors(pod.requests, allocated, node.allocatable):
        return None
    victims = []
    # Pods of higher priority are kept first, among equals the oldest.
    for other in sorted(lower, key=_importance):
        allocated.add(other.requests)
        if fit_errors(pod.requests, allocated, node.allocatable):
            allocated.remove(other.requests)
            victims.append(other)
    return PreemptionCandidate(node.api_object.name, tuple(victims)) if victims else None


def _importance(victim: PodInfo) -> tuple[int, float, str]:
    meta = victim.pod.metadata
    return -victim.priority, seconds(meta.creation_timestamp) or 0.0, victim.pod.key
