"""What a kubelet refuses: pods that do not belong on its node, resizes that do not fit."""

from __future__ import annotations

from everynode.api.affinity import NodeMatcher
from everynode.api.taints import NO_EXECUTE, untolerated
from everynode.cluster.machinery.filters import ELSEWHERE, taints_of
from everynode.cluster.machinery.fit import PODS, Demand, Load, demand_of, shortages
from everynode.cluster.machinery.lives import Course, PodLife
from everynode.cluster.machinery.objects import Pod
from everynode.cluster.machinery.seats import Seat

Refusal = tuple[str, str]  # reason, message

CRITICAL = 2_000_000_000  # pods of this priority are never evicted


def refuse(pod: Pod, seat: Seat) -> Refusal | None:
    """Why the kubelet will not run a pod that was given to its node; None if it will."""
    spec, node = pod.spec, seat.node
    matcher = NodeMatcher(spec.node_selector, spec.affinity)
    if not matcher.matches(node.name, node.metadata.labels):
        return "NodeAffinity", f"Pod was rejected: Predicate NodeAffinity failed: {ELSEWHERE}"
    if untolerated(taints_of(node), spec.tolerations, effects=(NO_EXECUTE,)) is not None:
        return "TaintToleration", "Pod was rejected: Predicate TaintToleration failed"
    if not seat.allocatable:
        return None  # nobody knows yet how large the node is
    demand, load = demand_of(pod), load_without(pod.uid, seat)
    for name in shortages(demand, load, seat.allocatable):
        return f"OutOf{name}", f"Pod was rejected: {_shortage(name, demand, load, seat)}"
    return None


def refuse_resize(life: PodLife, seat: Seat) -> Refusal | None:
    """Why a pod cannot have the resources it asks for now, or ever; None if it can."""
    demand = demand_of(life.pod)
    for name in shortages(demand, Load(), seat.allocatable):
        wanted, capacity = demand.amounts.get(name, 1), seat.allocatable.get(name, 0)
        text = f"Node didn't have enough capacity: {name}, "
        return "Infeasible", text + f"requested: {wanted}, capacity: {capacity}"
    load = load_without(life.uid, seat)
    for name in shortages(demand, load, seat.allocatable):
        return "Deferred", _shortage(name, demand, load, seat)
    return None


def load_without(uid: str, seat: Seat) -> Load:
    """What the other pods of a node take."""
    load = Load()
    for other in seat.lives.values():
        if other.uid != uid and other.course is not Course.OVER:
            load.add(demand_of(other.pod))
    return load


def choose_victim(seat: Seat) -> PodLife | None:
    """The pod that a node under pressure loses next: the least important one."""
    candidates = [
        life
        for life in seat.lives.values()
        if life.course is Course.LIVING and (life.pod.spec.priority or 0) < CRITICAL
    ]
    return min(
        candidates, key=lambda life: (life.pod.spec.priority or 0, life.pod.key), default=None
    )


def _shortage(name: str, demand: Demand, load: Load, seat: Seat) -> str:
    used = load.pods if name == PODS else load.amounts.get(name, 0)
    wanted = 1 if name == PODS else demand.amounts[name]
    capacity = seat.allocatable.get(name, 0)
    text = f"Node didn't have enough resource: {name}, "
    return text + f"requested: {wanted}, used: {used}, capacity: {capacity}"
