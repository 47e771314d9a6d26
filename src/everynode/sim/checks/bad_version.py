"""S1c: a version that works nowhere costs at most maxUnavailable Ready pods.

S1a counts the nodes that are down at one moment, without unreachable ones. This check remembers on
which nodes a version has replaced a Ready pod, and whether it has been available anywhere since. A
node that becomes unreachable under the new version does not justify the next disruption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.checks.check import DAEMONSET_KINDS, Check
from everynode.sim.checks.inplace_progress import gate_closed
from everynode.sim.checks.oracle import Oracle, canonical_template, is_true, node_fit
from everynode.sim.checks.possible_views import (
    TooManyViews,
    disrupted_pod,
    disrupted_since,
    owner_uid,
    possible_views,
)
from everynode.sim.checks.withdrawn import is_withdrawn
from everynode.sim.engine.clock import EPOCH
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, RecordedRequest, WorldRecord


class _VersionHistory:
    """The effects of a version since it became the DaemonSet's template."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.works = False  # the version has been available on some node
        self.taken: dict[str, int] = {}  # nodes that lost a Ready pod for it, and when


class BadVersion(Check):
    """Counts the nodes on which a version replaced a Ready pod before it was available anywhere."""

    id: ClassVar[str] = "S1c"
    title: ClassVar[str] = "a version that works nowhere takes maxUnavailable Ready pods at most"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True
    observed_kinds: ClassVar[tuple[str, ...]] = DAEMONSET_KINDS

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._histories: dict[str, _VersionHistory] = {}  # by the DaemonSet's uid

    def check(self, commit: Commit) -> Iterable[str]:
        """Check Ready pods that are disrupted for the current template."""
        pod = disrupted_pod(commit)
        if pod is not None and is_true(pod, keys.READY):
            yield from self._check(commit, pod)

    def observe(self, commit: Commit) -> None:
        """Start a new history where the template changes."""
        before, after = commit.before, commit.after
        if after is None:
            self._histories.pop(before.uid, None)
        elif before is None or (
            before.template != after.template
            and canonical_template(before.template) != canonical_template(after.template)
        ):
            self._histories[after.uid] = _VersionHistory(commit.version)

    def _check(self, commit: Commit, pod: Pod) -> Iterable[str]:
        history = self._histories.get(owner_uid(pod))
        if history is None or history.works:
            return
        assert commit.cause is not None
        cluster = self.record.cluster
        oracle = Oracle(cluster, cluster.sets[owner_uid(pod)], commit.cause.evaluated_at)
        if oracle.at_target(pod) or self._is_excused(commit, pod, oracle.ds):
            return
        if not oracle.desired_nodes and is_withdrawn(oracle, pod):
            return  # no node is to have the version
        history.taken[pod.node] = commit.version
        if len(history.taken) <= _allowed_down(oracle):
            return
        if _works(oracle):
            history.works = True
            return
        most = self._look_back(history, oracle.ds.uid, commit.cause)
        if len(history.taken) > most and not self._seems_to_work(commit, pod, oracle.ds):
            names = " ".join(sorted(history.taken))
            yield f"{pod.name}: a version that works nowhere has taken {names}, {most} may go"

    def _is_excused(self, commit: Commit, pod: Pod, current: DaemonSet) -> bool:
        """Whether some possible view gives a reason other than the current template."""
        assert commit.cause is not None
        try:
            for cluster, _ in possible_views(self.record, commit):
                ds = cluster.sets.get(current.uid)
                if ds is None or pod.uid not in cluster.pods:
                    continue
                oracle = Oracle(cluster, ds, commit.cause.evaluated_at)
                other = ds.template != current.template and not oracle.at_target(pod)
                if other or _is_in_the_way(oracle, pod):
                    return True
        except TooManyViews:
            return True
        return False

    def _seems_to_work(self, commit: Commit, pod: Pod, current: DaemonSet) -> bool:
        """Whether the version is available in some view that the controller may have had.

        This cannot raise TooManyViews: `_is_excused` has gone through the same views before.
        """
        assert commit.cause is not None
        for cluster, version in possible_views(self.record, commit):
            ds = cluster.sets.get(current.uid)
            if ds is None or ds.template != current.template or pod.uid not in cluster.pods:
                continue
            disrupted = disrupted_since(self.record, commit, version)
            if _works(Oracle(cluster, ds, commit.cause.evaluated_at), disrupted):
                return True
        return False

    def _look_back(self, history: _VersionHistory, uid: str, cause: RecordedRequest) -> int:
        """Drop nodes that no longer count from `taken`; return the highest limit in force since.

        If the version has been available anywhere, all nodes are dropped.
        """
        most = 0
        ahead = max(0.0, cause.now - EPOCH - cause.time)  # to a fast clock pods are available early
        for cluster, until in self._states(min(history.since, *cause.known_versions.values())):
            ds = cluster.sets.get(uid)
            if ds is None:
                continue
            oracle = Oracle(cluster, ds, EPOCH + until + ahead)
            most = max(most, _allowed_down(oracle))
            if cluster.version < history.since:
                continue
            history.works = history.works or _works(oracle)
            for node, version in list(history.taken.items()):
                if history.works or (version <= cluster.version and not _counts(oracle, node)):
                    del history.taken[node]
        return most

    def _states(self, since: int) -> Iterator[tuple[ClusterState, float]]:
        """The states since a version, newest first, with the time up to which each lasted."""
        until: float | None = None
        for cluster in reversed(self.record.states):
            if until is not None:
                yield cluster, until
            if cluster.version < since:
                return
            until = cluster.time


def _allowed_down(oracle: Oracle) -> int:
    return 0 if oracle.surging else oracle.limit


def _works(oracle: Oracle, disrupted: Collection[str] = ()) -> bool:
    """Whether the version is available on some node, and not only for a moment."""
    own = (pod for pods in oracle.pods.values() for pod in pods)
    return any(
        oracle.at_target(pod) and oracle.is_up(pod, disrupted) and oracle.proves(pod) for pod in own
    )


def _is_in_the_way(oracle: Oracle, pod: Pod) -> bool:
    """Whether the pod would be deleted without any update: misplaced, or a duplicate."""
    node = oracle.cluster.nodes.get(pod.node)
    if node is None or not node_fit(oracle.node_template(node.name)).may_stay(node):
        return True
    return any(each.uid != pod.uid for each in oracle.staying(node.name))


def _counts(oracle: Oracle, node: str) -> bool:
    """Whether a node is still down because of the version that replaced its pod."""
    if (
        node not in oracle.desired_nodes
        or node not in oracle.scope
        or not oracle.is_unavailable(node, ())
    ):
        return False
    met = any(oracle.at_target(pod) or gate_closed(pod) for pod in oracle.pods_on(node))
    return met or not oracle.is_silent(node)
