"""Filters: why a pod may not run on a node, in the words of kube-scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from everynode.api import keys
from everynode.api.affinity import NodeMatcher, pinned_node
from everynode.api.objects import Taint
from everynode.api.resources import parse_amounts
from everynode.api.taints import NO_SCHEDULE, SCHEDULING_EFFECTS, tolerates
from everynode.components.objects import FullNode, FullPod
from everynode.components.scheduler.resources import (
    AllocatedResources,
    PodRequests,
    fit_errors,
    pod_requests,
)

UNSCHEDULABLE: Final = "node(s) were unschedulable"
TAINTED: Final = "node(s) had untolerated taint(s)"
AFFINITY_MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"
NOT_THE_PINNED_NODE: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
PREEMPTION_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_UNSCHEDULABLE_TAINT: Final = Taint(keys.TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)


def taints_of(node: FullNode) -> tuple[Taint, ...]:
    """The node's taints, without the fields that tolerations do not look at."""
    return tuple(Taint(each.key, each.value, each.effect) for each in node.spec.taints)


class NodeInfo:
    """A node as the scheduler sees it: what it offers, and what is allocated."""

    __slots__ = ("allocatable", "allocated", "api_object", "nominated", "pods", "repelling")

    def __init__(self) -> None:
        self.api_object: FullNode | None = None  # None while only its pods are known
        self.allocatable: dict[str, int] = {}
        self.repelling: tuple[Taint, ...] = ()  # NoSchedule and NoExecute taints
        self.allocated = AllocatedResources()
        self.pods: dict[str, PodInfo] = {}  # by uid
        self.nominated: dict[str, PodInfo] = {}  # preemptors: victims on this node make room

    def update(self, api_object: FullNode | None) -> None:
        """The node has changed in the API, or is gone."""
        self.api_object = api_object
        if api_object is None:
            self.allocatable, self.repelling = {}, ()
            return
        self.allocatable = parse_amounts(api_object.status.allocatable)
        taints = taints_of(api_object)
        self.repelling = tuple(taint for taint in taints if taint.effect in SCHEDULING_EFFECTS)

    def add_pod(self, pod: PodInfo) -> None:
        """A pod runs here, or is being bound."""
        if pod.uid not in self.pods:
            self.allocated.add(pod.requests)
        self.pods[pod.uid] = pod

    def remove_pod(self, uid: str) -> None:
        """A pod is gone, or has finished."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.allocated.remove(pod.requests)

    def allocated_for(self, pod: PodInfo) -> AllocatedResources:
        """What counts as allocated for a pod: nominated pods of its priority or higher too."""
        others = [
            other
            for uid, other in self.nominated.items()
            if uid != pod.uid and uid not in self.pods and other.priority >= pod.priority
        ]
        if not others:
            return self.allocated
        allocated = self.allocated.copy()
        for other in others:
            allocated.add(other.requests)
        return allocated


class PodInfo:
    """A pod as the scheduler sees it: its requirements, computed once."""

    __slots__ = ("matcher", "pinned_node", "pod", "priority", "requests", "uid")

    def __init__(self, pod: FullPod, priority: int) -> None:
        self.pod = pod
        self.uid = pod.uid
        self.priority = priority
        self.requests: PodRequests = pod_requests(pod)
        self.matcher = NodeMatcher(pod.spec.node_selector, pod.spec.affinity)
        self.pinned_node = pinned_node(pod.spec.affinity)  # the only node it may run on, or ""


@dataclass(slots=True)
class Diagnosis:
    """Why a search found no node."""

    total: int
    reasons: Counter[str] = field(default_factory=Counter)
    resolvable: list[str] = field(default_factory=list)  # nodes where preemption could help

    def message(self, preemption: str = "") -> str:
        """The message of kube-scheduler."""
        rows = sorted(f"{number} {reason}" for reason, number in self.reasons.items())
        text = f"0/{self.total} nodes are available:"
        if rows:
            text += f" {', '.join(rows)}."
        elif not self.total:
            text = "no nodes available to schedule pods"
        return f"{text} {preemption}".strip()

    def preemption_message(self) -> str:
        """The part of the message about a preemption that did not help."""
        if not self.total:
            return ""
        tried = Diagnosis(self.total)
        if self.resolvable:
            tried.reasons[NO_VICTIMS] = len(self.resolvable)
        if self.total > len(self.resolvable):
            tried.reasons[PREEMPTION_NOT_HELPFUL] = self.total - len(self.resolvable)
        return f"preemption: {tried.message()}"


def filter_node(pod: PodInfo, node: NodeInfo) -> tuple[list[str], bool]:
    """Why the pod may not run on the node, and whether removing other pods could help."""
    if node.api_object is None:
        return [AFFINITY_MISMATCH], False
    mismatch = unresolvable_mismatch(pod, node, node.api_object)
    if mismatch:
        return [mismatch], False
    return fit_errors(pod.requests, node.allocated_for(pod), node.allocatable), True


def unresolvable_mismatch(pod: PodInfo, node: NodeInfo, api_object: FullNode) -> str:
    """Why the pod may not run on the node even if the node were empty."""
    tolerations = pod.pod.spec.tolerations
    if api_object.spec.unschedulable and not any(
        tolerates(each, _UNSCHEDULABLE_TAINT) for each in tolerations
    ):
        return UNSCHEDULABLE
    for taint in node.repelling:
        if not any(tolerates(each, taint) for each in tolerations):
            return TAINTED
    if not pod.matcher.matches(api_object.name, api_object.metadata.labels):
        return AFFINITY_MISMATCH
    return ""


def least_allocated(nodes: Iterable[NodeInfo]) -> NodeInfo:
    """The node with the lowest share of cpu, memory and pods allocated, by name among equals."""
    return min(nodes, key=_allocation_order)


def _allocation_order(node: NodeInfo) -> tuple[float, str]:
    shares = [
        node.allocated.amounts.get(name, 0) / node.allocatable[name]
        for name in ("cpu", "memory")
        if node.allocatable.get(name)
    ]
    pods = node.allocated.pods / max(1, node.allocatable.get("pods", 1))
    name = node.api_object.name if node.api_object else ""
    return round(sum(shares, pods), 6), name
