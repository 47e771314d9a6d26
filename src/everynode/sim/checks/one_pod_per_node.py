"""S2: one pod per node; with surge two, of different revisions, on at most maxSurge nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import Oracle, is_preparing, is_watched
from everynode.sim.checks.possible_views import (
    TooManyViews,
    by_controller,
    owner_uid,
    pods_on_node,
    possible_views,
)
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit


class OnePodPerNode(Check):
    """Controllers never create a pod beside another that still runs on the node."""

    id: ClassVar[str] = "S2"
    title: ClassVar[str] = "one pod per node, two at most while it surges"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check the node on which a pod was created."""
        if commit.type != "ADDED":
            return
        pod: Pod = commit.after
        node = pod.node
        if not owner_uid(pod):
            return  # a pull pod, or an orphan
        orphan = self._orphan(commit, pod)
        if orphan:
            yield f"{pod.name} was created on {node} beside the orphan {orphan}, which matches"
        others = [each for each in self._own_on(pod) if self._must_know(each, commit.actor)]
        if not others:
            return
        names = ", ".join(f"{each.name} ({each.hash})" for each in others)
        staying = [each for each in others if not each.terminating and not is_preparing(each)]
        if any(each.hash == pod.hash for each in staying):
            yield f"{pod.name} of {pod.hash} was created on {node} beside {names}"
        elif not self._may_surge(commit, owner_uid(pod)):
            yield f"{pod.name} was created on {node} beside {names}, beyond maxSurge"
        elif len(others) > 1:
            yield f"{pod.name} is the third pod on {node}: {names}"

    def _own_on(self, pod: Pod) -> list[Pod]:
        """Other pods of the same DaemonSet on the same node."""
        return [
            each
            for each in pods_on_node(self.record.cluster, pod.node)
            if owner_uid(each) == owner_uid(pod) and each.uid != pod.uid
        ]

    def _must_know(self, pod: Pod, actor: str) -> bool:
        """Whether a pod still runs and the controller must know of it.

        The controller cannot see a pod that lost its revision hash, nor one that another client
        adopted for it.
        """
        return not pod.finished and bool(pod.hash) and not self._adopted(pod, actor)

    def _may_surge(self, commit: Commit, uid: str) -> bool:
        """Whether in some view surge was enabled and fewer than maxSurge nodes used it."""
        assert commit.cause is not None
        try:
            for cluster, _ in possible_views(self.record, commit):
                ds = cluster.sets.get(uid)
                oracle = Oracle(cluster, ds, commit.cause.evaluated_at) if ds is not None else None
                if oracle is not None and oracle.surging and self._has_room(commit, oracle):
                    return True
        except TooManyViews:
            return True
        return False

    def _has_room(self, commit: Commit, oracle: Oracle) -> bool:
        """Whether at most maxSurge nodes have two pods, including pods created since that view."""
        created = []
        for each in reversed(self.record.commits):
            if each.version <= oracle.cluster.version:
                break
            if each.kind == "pods" and each.type == "ADDED" and each.actor == commit.actor:
                created.append(each.after)
        return len(nodes_with_two_pods(oracle, created)) <= oracle.limit

    def _orphan(self, commit: Commit, pod: Pod) -> str:
        """Names of matching orphans in every possible view: they should have been adopted first."""
        known: dict[str, str] | None = None
        try:
            for cluster, _ in possible_views(self.record, commit):
                ds = cluster.sets.get(owner_uid(pod))
                seen = _orphans(cluster, ds, pod.node) if ds is not None else {}
                known = seen if known is None else {u: n for u, n in known.items() if u in seen}
                if not known:
                    return ""
        except TooManyViews:
            return ""
        return ", ".join(sorted((known or {}).values()))

    def _adopted(self, pod: Pod, actor: str) -> bool:
        """Whether another client set the pod's owner: neither created nor adopted by us."""
        birth = self.record.created[pod.uid]
        if by_controller(birth) and owner_uid(birth.after) == owner_uid(pod):
            return False
        return not any(
            each.actor == actor
            and each.kind == "pods"
            and each.before is not None
            and each.after is not None
            and each.after.uid == pod.uid
            and owner_uid(each.before) != owner_uid(each.after)
            for each in reversed(self.record.commits)
        )


def nodes_with_two_pods(oracle: Oracle, created: Iterable[Pod]) -> list[str]:
    """Reachable nodes with more than one running pod of the DaemonSet, with the created ones."""
    known = [pod for pods in oracle.pods.values() for pod in pods]
    running = [pod for pod in known if not pod.finished and is_watched(pod)]
    found = Counter({pod.uid: pod.node for pod in (*running, *created)}.values())
    nodes = oracle.cluster.nodes
    return [n for n, count in found.items() if count > 1 and n in nodes and not oracle.is_silent(n)]


def _orphans(cluster: ClusterState, ds: DaemonSet, node: str) -> dict[str, str]:
    """The names of matching orphans on a node, by uid."""
    return {
        pod.uid: pod.name
        for pod in pods_on_node(cluster, node)
        if pod.metadata.controller is None
        and pod.hash
        and not pod.terminating
        and not pod.finished
        and matches(ds.selector, pod.metadata.labels)
    }
