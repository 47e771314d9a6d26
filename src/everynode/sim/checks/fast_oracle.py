"""FastOracle: the unavailable nodes of a DaemonSet, updated with every commit.

The oracle counts all nodes for every pod that is disrupted. Most disruptions are clearly allowed:
no node is held, the pod is old and Ready, and with its node at most maxUnavailable are down. This
fast path accepts those; all others go to the oracle. Measured fast path: keep it incremental.
"""

from __future__ import annotations

from math import inf
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import Pod
from everynode.api.times import TimeError, parse_time, seconds
from everynode.sim.checks.oracle import Oracle, inplace_state_of, is_true, node_fit
from everynode.sim.engine.clock import EPOCH
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, Record
from everynode.sim.history.snapshots import node_of

MANY: Final = 50  # nodes; with fewer the oracle is used


class FastOracle:
    """The nodes of one DaemonSet that are not available, or only from a later time on."""

    def __init__(self, cluster: ClusterState, ds: DaemonSet) -> None:
        oracle = Oracle(cluster, ds, 0.0)
        self.generation = ds.metadata.generation
        self._ds = ds
        self._plain = oracle.updating and oracle.unrestricted and not oracle.surging
        self._targets = oracle.targets
        self._wanted = set(oracle.desired_nodes)
        # By node, when it becomes available; nodes that are available for good are left out.
        self._up_from: dict[str, float] = {}
        for node in sorted(self._wanted):
            self.count(cluster, node)

    def look(self, cluster: ClusterState, node: str) -> None:
        """Recompute a node that was created, changed or deleted."""
        found = cluster.nodes.get(node)
        if found is None or not node_fit(self._ds.template).should_run(found):
            self._wanted.discard(node)
            self._up_from.pop(node, None)
            return
        self._wanted.add(node)
        self.count(cluster, node)

    def count(self, cluster: ClusterState, node: str) -> None:
        """Recompute a node whose pods changed."""
        if node not in self._wanted:
            return
        oracle = Oracle(cluster, self._ds, inf)
        up = filter(oracle.is_available, oracle.pods_on(node))
        since = min((available_from(pod, oracle.ds.min_ready_seconds) for pod in up), default=inf)
        if since == -inf:
            self._up_from.pop(node, None)
        else:
            self._up_from[node] = since

    def allows(self, cluster: ClusterState, pod: Pod, now: float) -> bool:
        """Whether disrupting this old Ready pod is clearly allowed."""
        node = node_of(pod)
        if not self._plain or node not in self._wanted or pod.hash in self._targets:
            return False
        if cluster.nodes[node].ready == "Unknown":
            return False
        if len(Oracle(cluster, self._ds, now).pods_on(node)) != 1:
            return False
        for name in [name for name, since in self._up_from.items() if since <= now]:
            del self._up_from[name]
        down = len(self._up_from) + (node not in self._up_from)
        limit = scaled_value(self._ds.strategy.max_unavailable, len(self._wanted), round_up=True)
        return down <= max(limit, 1)


def available_from(pod: Pod, least: int) -> float:
    """The time from which the pod counts as available if it stays as it is."""
    if least <= 0:
        return -inf
    kinds = (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates))
    found = [condition for kind in kinds if (condition := pod.condition(kind))]
    times = [each.last_transition_time or pod.status.start_time for each in found]
    return max(_resized_at(pod), *(seconds(time) or 0.0 for time in times)) + least


def _resized_at(pod: Pod) -> float:
    """When the pod was last resized, which may change none of its conditions."""
    state = inplace_state_of(pod)
    if not state.get("updateResources"):
        return 0.0
    batches = state.get("containerBatchesRecord") or [{"timestamp": state.get("updateTimestamp")}]
    try:
        return parse_time(str(batches[-1].get("timestamp")))
    except TimeError:
        return 0.0


class FastOracles:
    """A fast oracle for every DaemonSet that needs one."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._found: dict[str, FastOracle] = {}

    def observe(self, commit: Commit) -> None:
        """Update the fast oracles with a commit."""
        if not self._found:
            return
        cluster = self._record.cluster
        if commit.kind == "pods":
            places = [node_of(pod) for pod in (commit.before, commit.after) if pod is not None]
            for node in dict.fromkeys(places):
                for tally in self._found.values():
                    tally.count(cluster, node)
        elif commit.kind == "nodes":
            found = commit.before if commit.after is None else commit.after
            for tally in self._found.values():
                tally.look(cluster, found.name)
        elif commit.kind.startswith("controllerrevisions"):
            self._found.clear()

    def allows(self, commit: Commit, pod: Pod) -> bool:
        """Whether a disruption is clearly allowed in the state before its commit."""
        assert commit.cause is not None
        now = commit.cause.now
        if abs(now - EPOCH - commit.cause.time) > 1.0 or not is_true(pod, keys.READY):
            return False  # a wrong clock, or an unready pod is replaced
        cluster = self._record.states[-2]
        if len(cluster.nodes) < MANY:
            return False
        owner = pod.metadata.controller
        ds = cluster.sets.get(owner.uid) if owner is not None else None
        if ds is None:
            return False
        tally = self._found.get(ds.uid)
        if tally is None or tally.generation != ds.metadata.generation:
            tally = self._found[ds.uid] = FastOracle(cluster, ds)
        return tally.allows(cluster, pod, now)
