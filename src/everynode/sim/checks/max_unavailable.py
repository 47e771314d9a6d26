"""S1: a rollout keeps to maxUnavailable, and replaces unready pods only as R4 allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.fast_oracle import FastOracles
from everynode.sim.checks.inplace_progress import gate_closed, inplace_state_of
from everynode.sim.checks.last_pods import OBSERVED, LastPods
from everynode.sim.checks.oracle import (
    Oracle,
    is_marked_not_ready,
    is_preparing,
    is_true,
    is_watched,
    node_fit,
)
from everynode.sim.checks.possible_views import (
    TooManyViews,
    disrupted_pod,
    disrupted_since,
    owner_uid,
    possible_views,
)
from everynode.sim.checks.withdrawn import is_withdrawn, withdrawing
from everynode.sim.history.record import Commit, WorldRecord


class MaxUnavailable(Check):
    """A pod is disrupted only if some view that the controller may have had allows it."""

    id: ClassVar[str] = "S1"
    title: ClassVar[str] = "maxUnavailable, partition, selector and pause are promises"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True
    observed_kinds: ClassVar[tuple[str, ...]] = OBSERVED

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._fast_oracles = FastOracles(record)
        self._last_pods = LastPods(record)

    def check(self, commit: Commit) -> Iterable[str]:
        """Check whether the disruption of a pod is justified."""
        pod = disrupted_pod(commit)
        if pod is None or not owner_uid(pod) or self._fast_oracles.allows(commit, pod):
            return
        try:
            fault = self._fault(commit, pod)
        except TooManyViews:
            return
        if fault:
            yield f"{pod.name} on {pod.node}: {fault}"

    def observe(self, commit: Commit) -> None:
        """Update the counts of unavailable nodes, and note the pods that nodes had last."""
        self._last_pods.observe(commit)
        self._fast_oracles.observe(commit)

    def _fault(self, commit: Commit, pod: Pod) -> str:
        assert commit.cause is not None
        first = ""
        disrupted: dict[int, set[str]] = {}
        for cluster, version in possible_views(self.record, commit):
            ds = cluster.sets.get(owner_uid(pod))
            known = cluster.pods.get(pod.uid)
            if ds is None or known is None:
                continue
            if version not in disrupted:
                disrupted[version] = disrupted_since(self.record, commit, version)
            oracle = self._last_pods.oracle(cluster, ds, commit, version)
            removed = commit.after is None or not goes_on_in_place(commit.after)
            fault = why_not_disrupt(oracle, known, disrupted[version], removed=removed)
            if not fault:
                return ""
            first = first or fault
        return first


def goes_on_in_place(pod: Pod) -> bool:
    """Whether the disrupted pod continues to exist: it was updated in place."""
    return not pod.terminating and not is_preparing(pod) and not is_marked_not_ready(pod)


def why_not_disrupt(
    oracle: Oracle, pod: Pod, disrupted: Collection[str], *, removed: bool = True
) -> str:
    """Why this pod may not be disrupted in this state; empty if it may.

    The reasons for which a pod may be taken are tried in turn: it is gone or going already, it is
    misplaced, it is one too many, its toleration was withdrawn, it is updated.
    """
    node = pod.node
    if node not in oracle.cluster.nodes or pod.finished or pod.terminating:
        return ""
    fit = node_fit(oracle.node_template(node))
    if not fit.may_stay(oracle.cluster.nodes[node]):
        return ""  # misplaced
    others = [each for each in oracle.staying(node) if each.uid != pod.uid]
    others = [each for each in others if each.uid not in disrupted and is_watched(each)]
    if _is_one_too_many(oracle, pod, others):
        if oracle.is_available(pod) and not any(map(oracle.is_available, others)):
            return "S1: of several pods the one that is available was taken"
        return ""
    if oracle.at_target(pod) and not (oracle.in_place and inplace_state_of(pod)):
        return "S7: its pod is what it should be and was taken"
    if removed and is_withdrawn(oracle, pod) and node not in oracle.desired_nodes:
        return _check_withdrawal(oracle, node, disrupted)
    if removed and not others and not fit.should_run(oracle.cluster.nodes[node]):
        return "S7: the node may keep its pod, but would get no other one"
    return _check_update(oracle, pod, disrupted)


def _is_one_too_many(oracle: Oracle, pod: Pod, others: list[Pod]) -> bool:
    if not others:
        return False
    if not oracle.surging:
        return True
    if oracle.at_target(pod):
        return any(oracle.at_target(each) for each in others)
    same = [each for each in others if not oracle.at_target(each)]
    successors = [each for each in others if oracle.at_target(each)]
    if same:
        return True
    proven = oracle.is_proven()
    return any(oracle.is_up(each) and (proven or oracle.proves(each)) for each in successors)


def _check_withdrawal(oracle: Oracle, node: str, disrupted: Collection[str]) -> str:
    """A pod whose toleration was withdrawn goes within the budget, and nothing follows it."""
    if node not in oracle.scope or not oracle.updating:
        return "S3/S4/S5: the node is held and its pod was taken"
    if oracle.is_silent(node):
        return "S1: the node's kubelet is silent, or the node is in maintenance"
    down = [*withdrawing(oracle, disrupted), *oracle.unavailable(disrupted)]
    if len(down) > oracle.limit:
        return f"S1a: {len(down)} nodes are then down ({' '.join(down)}), {oracle.limit} may"
    return ""


def _check_update(oracle: Oracle, pod: Pod, disrupted: Collection[str]) -> str:
    node = pod.node
    if node not in oracle.scope:
        strategy = oracle.ds.strategy
        why = "S5: paused" if strategy.paused else "S3/S4: partition or selector"
        return f"{why}, the node is held and its pod was taken"
    if not oracle.updating:
        return "S5: nothing may be updated now"
    if oracle.is_silent(node):
        return "S1: the node's kubelet is silent, or the node is in maintenance"
    if oracle.surging and not oracle.is_sick(pod):
        what = "Ready pod" if is_true(pod, keys.READY) else "pod that is not sick"
        return f"S1: a {what} was taken before its successor is available"
    if gate_closed(pod):
        return ""  # it was taken before, and is recreated now: that costs nothing more
    unavailable = [] if oracle.surging else oracle.unavailable(disrupted)
    if not oracle.is_sick(pod):
        if len(unavailable) > oracle.limit:
            names = " ".join(unavailable)
            return f"S1a: {len(unavailable)} nodes are then down ({names}), {oracle.limit} may"
        return ""
    if not oracle.surging and len(unavailable) <= oracle.limit:
        return ""  # by a clock that is behind the pod is not sick yet: an ordinary one
    in_progress = oracle.in_progress(disrupted)
    bound = max(oracle.limit, oracle.proven_count())
    if len(in_progress) > bound:
        return f"S1b: {len(in_progress)} nodes are under way ({' '.join(in_progress)}), {bound} may"
    return ""
