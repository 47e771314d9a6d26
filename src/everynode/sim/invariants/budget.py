"""S1: a rollout takes no more nodes down than maxUnavailable allows, and cures as R4 says."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.referee import (
    Referee,
    is_blocked,
    is_preparing,
    is_seen,
    is_true,
    node_of,
    state_of,
    wants,
)
from everynode.sim.invariants.tally import Tallies
from everynode.sim.invariants.views import (
    Doubt,
    owner_uid,
    taken_pod,
    taken_since,
    views,
)
from everynode.sim.record import Commit, Record


class Budget(Invariant):
    """A pod is taken only where some view the controller may have had allows it."""

    id: ClassVar[str] = "S1"
    title: ClassVar[str] = "maxUnavailable, partition, selector and pause are promises"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True
    noted: ClassVar[tuple[str, ...]] = ("nodes", "pods", "controllerrevisions.apps", *SETS)

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._tallies = Tallies(record)

    def judge(self, commit: Commit) -> Iterable[str]:
        """Whether the taking of a pod can be justified."""
        pod = taken_pod(commit)
        if pod is None or not owner_uid(pod) or self._tallies.allows(commit, pod):
            return
        try:
            fault = self._fault(commit, pod)
        except Doubt:
            return
        if fault:
            yield f"{pod.name} on {node_of(pod)}: {fault}"

    def note(self, commit: Commit) -> None:
        """Keep count of who is down."""
        self._tallies.note(commit)

    def _fault(self, commit: Commit, pod: Pod) -> str:
        assert commit.asked is not None
        first = ""
        taken: dict[int, set[str]] = {}
        for scene, version in views(self.record, commit):
            ds = scene.sets.get(owner_uid(pod))
            known = scene.pods.get(pod.uid)
            if ds is None or known is None:
                continue
            if version not in taken:
                taken[version] = taken_since(self.record, commit, version)
            referee = Referee(scene, ds, commit.asked.now)
            removed = commit.after is None or not is_same_life(commit.after)
            fault = judge_taking(referee, known, taken[version], removed=removed)
            if not fault:
                return ""
            first = first or fault
        return first


def is_same_life(pod: Pod) -> bool:
    """Whether the pod that was taken goes on living: it was changed in place."""
    return not pod.terminating and not is_preparing(pod) and not is_blocked(pod)


def judge_taking(
    referee: Referee, pod: Pod, taken: Collection[str], *, removed: bool = True
) -> str:
    """Why this pod may not be taken in this state, empty if it may."""
    node = node_of(pod)
    if node not in referee.scene.nodes or pod.finished or pod.terminating:
        return ""
    if not wants(referee.life(node)).stays(referee.scene.nodes[node]):
        return ""  # misplaced
    others = [each for each in referee.staying(node) if each.uid != pod.uid]
    others = [each for each in others if each.uid not in taken and is_seen(each)]
    if _is_one_too_many(referee, pod, others):
        if referee.is_up(pod) and not any(map(referee.is_up, others)):
            return "S1: of several pods the one that is available was taken"
        return ""
    if referee.at_target(pod) and not (referee.in_place and state_of(pod)):
        return "S7: its pod is what it should be and was taken"
    if removed and not others and not wants(referee.life(node)).runs(referee.scene.nodes[node]):
        return "S7: the node may keep its pod, but would get no other one"
    return _judge_update(referee, pod, taken)


def _is_one_too_many(referee: Referee, pod: Pod, others: list[Pod]) -> bool:
    if not others:
        return False
    if not referee.surging:
        return True
    if referee.at_target(pod):
        return any(referee.at_target(each) for each in others)
    same = [each for each in others if not referee.at_target(each)]
    successors = [each for each in others if referee.at_target(each)]
    return bool(same) or any(referee.is_up(each) for each in successors)


def _judge_update(referee: Referee, pod: Pod, taken: Collection[str]) -> str:
    node = node_of(pod)
    if node not in referee.scope:
        strategy = referee.ds.strategy
        why = "S5: paused" if strategy.paused else "S3/S4: partition or selector"
        return f"{why}, the node is held and its pod was taken"
    if not referee.updating:
        return "S5: nothing may be updated now"
    if referee.is_silent(node):
        return "S1: the node's kubelet is silent"
    if is_true(pod, keys.READY):
        if referee.surging:
            return "S1: a Ready pod was taken before its successor is available"
        down = referee.down(taken)
        if len(down) > referee.limit:
            return f"S1a: {len(down)} nodes are then down ({' '.join(down)}), {referee.limit} may"
        return ""
    under_way = referee.under_way(taken)
    bound = max(referee.limit, referee.proven())
    if len(under_way) > bound:
        return f"S1b: {len(under_way)} nodes are under way ({' '.join(under_way)}), {bound} may"
    return ""
