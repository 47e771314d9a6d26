"""LastPods: the pods that nodes had last, and which of them a controller certainly saw (R3).

While it lives, a controller remembers the last pod of a node that is empty. It may not know a pod
that came and went unseen.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.checks.check import DAEMONSET_KINDS
from everynode.sim.checks.oracle import Oracle, is_watched
from everynode.sim.checks.possible_views import by_controller, owner_uid
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, WorldRecord

OBSERVED = ("nodes", "pods", "controllerrevisions.apps", *DAEMONSET_KINDS)


class _Departed(msgspec.Struct):
    """A pod that is no longer there, or no longer belongs to its DaemonSet."""

    pod: Pod
    created: int  # the version at which it was created
    gone: int
    node_replaced: bool = False  # its node is gone; another one may have its name now


class LastPods:
    """Updated with every commit."""

    def __init__(self, record: WorldRecord) -> None:
        self._record = record
        self._departed: dict[tuple[str, str], list[_Departed]] = {}  # by DaemonSet uid and node
        self._known: dict[str, list[int]] = {}  # by process: versions of pods it knew, ascending

    def observe(self, commit: Commit) -> None:
        """Note a pod that departed, a node that was deleted, and what a controller knew."""
        if by_controller(commit) and commit.cause is not None:
            known = self._known.setdefault(commit.actor, [0])
            version = commit.cause.known_versions.get("pods", 0)
            if version > known[-1]:
                known.append(version)
        if commit.kind == "nodes" and commit.after is None:
            for (_, node), departed in self._departed.items():
                if node == commit.before.name:
                    for each in departed:
                        each.node_replaced = True
        if commit.kind == "pods" and _departs(commit):
            pod: Pod = commit.before
            created = self._record.created.get(pod.uid)
            version = created.version if created is not None else 0
            key = owner_uid(pod), pod.node
            # Pods of a deleted node go after it: no controller remembers them for the next one.
            left = _Departed(pod, version, commit.version)
            left.node_replaced = pod.node not in self._record.cluster.nodes
            self._departed.setdefault(key, []).append(left)

    def oracle(self, cluster: ClusterState, ds: DaemonSet, commit: Commit, version: int) -> Oracle:
        """The oracle of a decision, with what its controller certainly remembered."""
        assert commit.cause is not None
        oracle = Oracle(cluster, ds, commit.cause.evaluated_at)
        if oracle.unrestricted:
            return oracle
        held = set()
        for uid, node in self._departed:
            if uid != ds.uid or node not in cluster.nodes or oracle.pods_on(node):
                continue
            last, sure = self.of(uid, node, commit.actor, version)
            if sure and all(map(oracle.at_target, last)):
                held.add(node)
        return Oracle(cluster, ds, oracle.now, frozenset(held)) if held else oracle

    def of(self, uid: str, node: str, actor: str, version: int) -> tuple[list[Pod], bool]:
        """The pods of an empty node that a controller may know as the last one, newest first.

        Also whether it certainly knows one of them. `version` is that of the pods it saw.
        """
        found: list[Pod] = []
        for each in reversed(self._departed.get((uid, node), ())):
            if each.gone > version:
                continue
            found.append(each.pod)
            if not each.node_replaced and self._surely_saw(actor, each):
                return found, True
        return found, False

    def _surely_saw(self, actor: str, departed: _Departed) -> bool:
        """Whether the process knew a version at which the pod existed."""
        known = self._known.get(actor, [])
        first = bisect_left(known, departed.created)
        return first < len(known) and known[first] < departed.gone


def _departs(commit: Commit) -> bool:
    before, after = commit.before, commit.after
    if before is None or not owner_uid(before) or not is_watched(before):
        return False
    return after is None or owner_uid(after) != owner_uid(before) or not is_watched(after)
