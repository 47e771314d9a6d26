"""Why a pod may not run on a node, in the words of Kubernetes' scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from everynode.api import keys
from everynode.api.affinity import NodeMatcher, pinned_node
from everynode.api.objects import Taint
from everynode.api.taints import NO_SCHEDULE, REPELLING, tolerates
from everynode.cluster.machinery.fit import Demand, Load, count, demand_of, misfits
from everynode.cluster.machinery.objects import Node, Pod

UNSCHEDULABLE: Final = "node(s) were unschedulable"
TAINTED: Final = "node(s) had untolerated taint(s)"
ELSEWHERE: Final = "node(s) didn't match Pod's node affinity/selector"
NOT_PINNED: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NO_HELP: Final = "Preemption is not helpful for scheduling"
_CORDONED: Final = Taint(keys.TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)


def taints_of(node: Node) -> tuple[Taint, ...]:
    """The node's taints, without what does not decide anything."""
    return tuple(Taint(each.key, each.value, each.effect) for each in node.spec.taints)


class Spot:
    """A node as the scheduler sees it: what it offers, and what is taken."""

    __slots__ = ("allocatable", "load", "node", "nominated", "pods", "repelling")

    def __init__(self) -> None:
        self.node: Node | None = None  # None while only its pods are known
        self.allocatable: dict[str, int] = {}
        self.repelling: tuple[Taint, ...] = ()
        self.load = Load()
        self.pods: dict[str, Wish] = {}  # by uid
        self.nominated: dict[str, Wish] = {}  # those for whom room is being made

    def follow(self, node: Node | None) -> None:
        """Take over what the API says of the node."""
        self.node = node
        self.allocatable = count(node.status.allocatable) if node is not None else {}
        taints = taints_of(node) if node is not None else ()
        self.repelling = tuple(taint for taint in taints if taint.effect in REPELLING)

    def put(self, wish: Wish) -> None:
        """A pod runs here, or is about to."""
        if wish.pod.uid not in self.pods:
            self.load.add(wish.demand)
        self.pods[wish.pod.uid] = wish

    def take_away(self, uid: str) -> None:
        """A pod is gone, or has finished."""
        wish = self.pods.pop(uid, None)
        if wish is not None:
            self.load.remove(wish.demand)

    def load_for(self, wish: Wish) -> Load:
        """The load that counts for a pod: with those for whom room is made before it."""
        others = [
            other
            for uid, other in self.nominated.items()
            if uid != wish.pod.uid and uid not in self.pods and other.priority >= wish.priority
        ]
        if not others:
            return self.load
        load = self.load.copy()
        for other in others:
            load.add(other.demand)
        return load


class Wish:
    """What a pod wants of the scheduler, worked out once."""

    __slots__ = ("demand", "matcher", "pinned", "pod", "priority")

    def __init__(self, pod: Pod, priority: int) -> None:
        self.pod = pod
        self.priority = priority
        self.demand: Demand = demand_of(pod)
        self.matcher = NodeMatcher(pod.spec.node_selector, pod.spec.affinity)
        self.pinned = pinned_node(pod.spec.affinity)


@dataclass(slots=True)
class Verdict:
    """What became of a search for a node."""

    total: int
    reasons: Counter[str] = field(default_factory=Counter)
    curable: list[str] = field(default_factory=list)  # nodes where preemption could help

    def message(self, preemption: str = "") -> str:
        """The message of kube-scheduler."""
        rows = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
        text = f"0/{self.total} nodes are available:"
        if rows:
            text += f" {', '.join(rows)}."
        elif not self.total:
            text = "no nodes available to schedule pods"
        return f"{text} {preemption}".strip()

    def preemption_message(self) -> str:
        """What to say when preemption did not help."""
        if not self.total:
            return ""
        tried = Verdict(self.total)
        if self.curable:
            tried.reasons[NO_VICTIMS] = len(self.curable)
        if self.total > len(self.curable):
            tried.reasons[NO_HELP] = self.total - len(self.curable)
        return f"preemption: {tried.message()}"


def examine(wish: Wish, spot: Spot) -> tuple[list[str], bool]:
    """Why the pod may not run there, and whether fewer other pods would help."""
    node = spot.node
    if node is None:
        return [ELSEWHERE], False
    refusal = refuse(wish, spot, node)
    if refusal:
        return [refusal], False
    return misfits(wish.demand, spot.load_for(wish), spot.allocatable), True


def refuse(wish: Wish, spot: Spot, node: Node) -> str:
    """Why the node is wrong for the pod, however empty it may be."""
    tolerations = wish.pod.spec.tolerations
    if node.spec.unschedulable and not any(tolerates(each, _CORDONED) for each in tolerations):
        return UNSCHEDULABLE
    for taint in spot.repelling:
        if not any(tolerates(each, taint) for each in tolerations):
            return TAINTED
    if not wish.matcher.matches(node.name, node.metadata.labels):
        return ELSEWHERE
    return ""


def most_room(spots: Iterable[Spot], demand: Demand) -> Spot:
    """The spot on which the least of cpu and memory is taken, by name among equals."""
    return min(spots, key=lambda spot: (_share(spot), spot.node.name if spot.node else ""))


def _share(spot: Spot) -> float:
    shares = [
        spot.load.amounts.get(name, 0) / spot.allocatable[name]
        for name in ("cpu", "memory")
        if spot.allocatable.get(name)
    ]
    crowd = spot.load.pods / max(1, spot.allocatable.get("pods", 1))
    return round(sum(shares, crowd), 6)
