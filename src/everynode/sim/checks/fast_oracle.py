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
from everynode.sim.checks.inplace_progress import inplace_state_of
from everynode.sim.checks.oracle import TRIAL_SECONDS, Oracle, is_left_alone, is_true, node_fit
from everynode.sim.checks.pod_health import clock_lag, proves_from, trusted_from
from everynode.sim.engine.clock import EPOCH
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, WorldRecord

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
        # The same while the target is not proven (docs/rules.md#r4), and when it is proven where.
        self._settled_from: dict[str, float] = {}
        self._proven_from: dict[str, float] = {}
        for node in sorted(self._wanted):
            self.recount_pods(cluster, node)

    def recount_node(self, cluster: ClusterState, node: str) -> None:
        """Recompute a node that was created, changed or deleted."""
        found = cluster.nodes.get(node)
        if found is None or not node_fit(self._ds.template).should_run(found):
            self._wanted.discard(node)
            for each in (self._up_from, self._settled_from, self._proven_from):
                each.pop(node, None)
            return
        self._wanted.add(node)
        self.recount_pods(cluster, node)

    def recount_pods(self, cluster: ClusterState, node: str) -> None:
        """Recompute a node whose pods changed."""
        if node not in self._wanted:
            return
        oracle = Oracle(cluster, self._ds, inf)
        up = [pod for pod in oracle.pods_on(node) if oracle.is_available(pod)]
        _note(self._up_from, node, min(map(self._pod_up_from, up), default=inf))
        _note(self._settled_from, node, min(map(self._pod_settled_from, up), default=inf))
        proofs = [self._pod_settled_from(pod) for pod in up if pod.hash in self._targets]
        self._proven_from.pop(node, None)
        if proofs:
            self._proven_from[node] = min(proofs)

    def _pod_up_from(self, pod: Pod) -> float:
        since = available_from(pod, self._ds.min_ready_seconds)
        return max(since, trusted_from(pod) or -inf) if pod.hash in self._targets else since

    def _pod_settled_from(self, pod: Pod) -> float:
        since = self._pod_up_from(pod)
        if pod.hash not in self._targets or self._ds.min_ready_seconds >= TRIAL_SECONDS:
            return since
        return max(since, proves_from(pod))

    def allows(self, cluster: ClusterState, pod: Pod, now: float) -> bool:
        """Whether disrupting this old Ready pod is clearly allowed."""
        node = pod.node
        if not self._plain or node not in self._wanted or pod.hash in self._targets:
            return False
        if is_left_alone(cluster.nodes[node]):
            return False
        if len(Oracle(cluster, self._ds, now).pods_on(node)) != 1:
            return False
        proven = any(since <= now for since in self._proven_from.values())
        up_from = self._up_from if proven else self._settled_from
        for name in [name for name, since in up_from.items() if since <= now]:
            del up_from[name]
        down = len(up_from) + (node not in up_from)
        limit = scaled_value(self._ds.strategy.max_unavailable, len(self._wanted), round_up=True)
        return down <= max(limit, 1)


def _note(times: dict[str, float], node: str, since: float) -> None:
    if since == -inf:
        times.pop(node, None)
    else:
        times[node] = since


def available_from(pod: Pod, least: int) -> float:
    """The time from which the pod counts as available if it stays as it is."""
    if least <= 0:
        return -inf
    gates = (gate.condition_type for gate in pod.spec.readiness_gates)
    ready = _since(pod, keys.READY) + clock_lag(pod)
    return max(_resized_at(pod), ready, *(_since(pod, kind) for kind in gates)) + least


def _since(pod: Pod, kind: str) -> float:
    condition = pod.condition(kind)
    if condition is None:
        return 0.0
    return seconds(condition.last_transition_time or pod.status.start_time) or 0.0


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

    def __init__(self, record: WorldRecord) -> None:
        self._record = record
        self._found: dict[str, FastOracle] = {}

    def observe(self, commit: Commit) -> None:
        """Update the fast oracles with a commit."""
        if not self._found:
            return
        cluster = self._record.cluster
        if commit.kind == "pods":
            places = [pod.node for pod in (commit.before, commit.after) if pod is not None]
            for node in dict.fromkeys(places):
                for oracle in self._found.values():
                    oracle.recount_pods(cluster, node)
        elif commit.kind == "nodes":
            found = commit.before if commit.after is None else commit.after
            for oracle in self._found.values():
                oracle.recount_node(cluster, found.name)
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
        oracle = self._found.get(ds.uid)
        if oracle is None or oracle.generation != ds.metadata.generation:
            oracle = self._found[ds.uid] = FastOracle(cluster, ds)
        return oracle.allows(cluster, pod, now)
