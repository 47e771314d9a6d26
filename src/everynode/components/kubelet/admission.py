"""Kubelet admission: pods that a node refuses, resizes that do not fit, pods to evict."""

from __future__ import annotations

from everynode.api.affinity import NodeMatcher
from everynode.api.resources import PODS
from everynode.api.taints import NO_EXECUTE, find_untolerated_taint
from everynode.components.kubelet.node import SimulatedNode
from everynode.components.kubelet.pod import PodState, SimulatedPod
from everynode.components.objects import FullPod
from everynode.components.scheduler.filters import AFFINITY_MISMATCH, taints_of
from everynode.components.scheduler.resources import (
    AllocatedResources,
    PodRequests,
    insufficient_resources,
    pod_requests,
)

Refusal = tuple[str, str]  # reason, message

CRITICAL_PRIORITY = 2_000_000_000  # pods of this priority are never evicted


def refuse_pod(pod: FullPod, node: SimulatedNode) -> Refusal | None:
    """Why the kubelet will not run a pod that is bound to its node; None if it will."""
    spec, api_node = pod.spec, node.api_object
    if api_node.metadata.annotations.shutdown:
        return "NodeShutdown", "Pod was rejected as the node is shutting down."
    matcher = NodeMatcher(spec.node_selector, spec.affinity)
    if not matcher.matches(api_node.name, api_node.metadata.labels):
        text = f"Pod was rejected: Predicate NodeAffinity failed: {AFFINITY_MISMATCH}"
        return "NodeAffinity", text
    if (
        find_untolerated_taint(taints_of(api_node), spec.tolerations, effects=(NO_EXECUTE,))
        is not None
    ):
        return "TaintToleration", "Pod was rejected: Predicate TaintToleration failed"
    if not node.allocatable:
        return None  # the node has not reported its size yet
    requests, allocated = pod_requests(pod), allocated_to_others(pod.uid, node)
    for name in insufficient_resources(requests, allocated, node.allocatable):
        text = _insufficient_message(name, requests, allocated, node)
        return f"OutOf{name}", f"Pod was rejected: {text}"
    return None


def refuse_resize(pod: SimulatedPod, node: SimulatedNode) -> Refusal | None:
    """Why a resize is Deferred (does not fit now) or Infeasible (never fits); None if it fits."""
    requests = pod_requests(pod.api_object)
    for name in insufficient_resources(requests, AllocatedResources(), node.allocatable):
        wanted, capacity = requests.amounts.get(name, 1), node.allocatable.get(name, 0)
        text = f"Node didn't have enough capacity: {name}, "
        return "Infeasible", text + f"requested: {wanted}, capacity: {capacity}"
    allocated = allocated_to_others(pod.uid, node)
    for name in insufficient_resources(requests, allocated, node.allocatable):
        return "Deferred", _insufficient_message(name, requests, allocated, node)
    return None


def allocated_to_others(uid: str, node: SimulatedNode) -> AllocatedResources:
    """The resources that the other pods of a node request."""
    allocated = AllocatedResources()
    for other in node.pods.values():
        if other.uid != uid and other.state is not PodState.FINISHED:
            allocated.add(pod_requests(other.api_object))
    return allocated


def choose_eviction_victim(node: SimulatedNode) -> SimulatedPod | None:
    """The pod that a node under pressure evicts next: the one of the lowest priority."""
    candidates = [
        pod
        for pod in node.pods.values()
        if pod.state is PodState.ACTIVE and _priority(pod) < CRITICAL_PRIORITY
    ]
    return min(candidates, key=lambda pod: (_priority(pod), pod.api_object.key), default=None)


def _priority(pod: SimulatedPod) -> int:
    return pod.api_object.spec.priority or 0


def _insufficient_message(
    name: str, requests: PodRequests, allocated: AllocatedResources, node: SimulatedNode
) -> str:
    used = allocated.pods if name == PODS else allocated.amounts.get(name, 0)
    wanted = 1 if name == PODS else requests.amounts[name]
    capacity = node.allocatable.get(name, 0)
    text = f"Node didn't have enough resource: {name}, "
    return text + f"requested: {wanted}, used: {used}, capacity: {capacity}"
