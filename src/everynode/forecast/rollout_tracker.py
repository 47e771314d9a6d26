"""Rollout tracker: which nodes are available, updated or down, after every commit of the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.times import seconds
from everynode.api.versions import decode_daemonset
from everynode.apiserver.storage.store import Change, Store
from everynode.forecast.recording import NodeState, state_of
from everynode.inspect.snapshot import Snapshot
from everynode.kube.watch.decode import Decoder
from everynode.sim.checks.oracle import Oracle
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.cluster_state import ClusterState

_DAEMONSET_COLLECTIONS: Final = {
    "daemonsets.apps": Flavour.NATIVE,
    "daemonsets.apps.kruise.io": Flavour.ADVANCED,
}
_REVISIONS: Final = "controllerrevisions.apps"
_EMPTY_CLUSTER: Final = ClusterState(0, 0.0)
_decode_pod: Final = Decoder(Pod).one  # the controller's decoder: objects decoded by it are shared
_decode_node: Final = Decoder(Node).one
_decode_revision: Final = Decoder(ControllerRevision).one


class RolloutTracker:
    """Tracks one DaemonSet over all nodes.

    `on_preparing_delete` is called with pods that wait for a preDelete hook, `on_node_state` with
    the seconds since the update began, a node and its state.
    """

    def __init__(
        self,
        store: Store,
        loop: SimLoop,
        clock: SimClock,
        *,
        on_preparing_delete: Callable[[Pod], None] = lambda pod: None,
        on_node_state: Callable[[float, str, NodeState], None] = lambda *_: None,
    ) -> None:
        self.pods: dict[str, dict[str, Pod]] = {}  # by node, by uid
        self.up: set[str] = set()
        self.updated: set[str] = set()  # available, at another revision than before the update
        self.changed_at = 0.0  # when a node last became available, unavailable or updated
        self.last_pod_change = (
            0.0  # when a pod was last created, removed, or changed by a controller
        )
        self.most_down = 0
        self.most_doubled = 0
        self.curve: list[tuple[float, int, int]] = []  # time, updated, down
        self.set: DaemonSet | None = None
        self._on_preparing_delete = on_preparing_delete
        self._on_node_state = on_node_state
        self._node_by_pod: dict[str, str] = {}  # node by the pod's name
        self._nodes: dict[str, bytes] = {}
        self._revisions: dict[str, bytes] = {}
        self._old: frozenset[str] = frozenset()
        self._initially_up: frozenset[str] = frozenset()  # available when the update began
        self._down = 0
        self._with_two_pods: set[str] = set()
        self._began: float | None = None
        self._oracle: Oracle | None = None  # which pods are available
        self._loop, self._clock = loop, clock
        store.observe("pods", self._pod_changed)
        store.observe("nodes", self._keep_latest(self._nodes))
        store.observe(_REVISIONS, self._keep_latest(self._revisions))
        for kind, flavour in _DAEMONSET_COLLECTIONS.items():
            store.observe(kind, partial(self._set_changed, flavour))

    # --- Questions -----------------------------------------------------------------------------

    def begin(self, target: str = "") -> None:
        """The update begins: from now on available nodes that become unavailable count as down.

        `target` is the hash of the new revision, where pods may have it already.
        """
        self._began = self.changed_at = self.last_pod_change = self._clock.monotonic()
        self._initially_up = frozenset(self.up)
        self._old = frozenset(pod.hash for _, pod in self._all_pods()) - {target}
        self.updated = {
            node
            for node in self.up
            if any(not self.is_old(pod.hash) and self._is_up(pod) for pod in self._pods_on(node))
        }
        self.curve = [(0.0, len(self.updated), 0)]

    def states(self, silent: Collection[str]) -> dict[str, NodeState]:
        """The state of every node now; nodes without a pod are taken to be not eligible."""
        found = dict.fromkeys(self._nodes, NodeState.NOT_ELIGIBLE)
        for node, pods in self.pods.items():
            if pods:
                available = list(pods.values()) if node in self.up else []
                found[node] = state_of(pods.values(), available, self.is_old)
        found.update(dict.fromkeys(silent, NodeState.UNREACHABLE))
        return found

    def removed(self, wanted: frozenset[str]) -> int:
        """How many nodes lost an available pod because the new template does not want them."""
        return len(self._initially_up - wanted - self.up)

    def is_old(self, hash: str) -> bool:
        """Whether pods had this revision before the update."""
        return hash in self._old

    def nodes(self) -> dict[str, Node]:
        """All nodes, decoded from the store."""
        return {name: _decode_node(body) for name, body in sorted(self._nodes.items())}

    def node_of(self, pod: str) -> str:
        """The node of a pod by the pod's name."""
        return self._node_by_pod.get(pod, "")

    def oracle(self) -> Oracle:
        """The simulator's oracle of the rules R2 to R5, on the current state."""
        assert self.set is not None
        pods = {pod.uid: pod for _, pod in self._all_pods()}
        revisions = {name: _decode_revision(body) for name, body in self._revisions.items()}
        now = self._clock.monotonic()
        cluster = ClusterState(0, now, self.nodes(), pods, {self.set.uid: self.set}, revisions)
        return Oracle(cluster, self.set, self._clock.now())

    def snapshot(self) -> Snapshot:
        """All objects as they are now."""
        assert self.set is not None
        return Snapshot(
            self.set,
            tuple(self.nodes().values()),
            tuple(pod for _, pod in self._all_pods()),
            tuple(_decode_revision(body) for _, body in sorted(self._revisions.items())),
        )

    def _pods_on(self, node: str) -> Iterable[Pod]:
        return self.pods.get(node, {}).values()

    def _is_up(self, pod: Pod) -> bool:
        assert self._oracle is not None
        self._oracle.now = self._clock.now()
        return self._oracle.is_available(pod)

    def _all_pods(self) -> Iterator[tuple[str, Pod]]:
        return ((node, pod) for node, pods in self.pods.items() for pod in pods.values())

    # --- Store changes --------------------------------------------------------------------------

    def _keep_latest(self, bodies: dict[str, bytes]) -> Callable[[Change], None]:
        def changed(change: Change) -> None:
            if change.type == "DELETED":
                bodies.pop(change.record.name, None)
            else:
                bodies[change.record.name] = change.record.body

        return changed

    def _set_changed(self, flavour: Flavour, change: Change) -> None:
        self.set = decode_daemonset(change.record.body, flavour=flavour)
        self._oracle = Oracle(_EMPTY_CLUSTER, self.set, 0.0)

    def _pod_changed(self, change: Change) -> None:
        pod = _decode_pod(change.record.body)
        if pod.metadata.controller is None or keys.PULL_POD_OWNER in pod.metadata.labels:
            return
        node = pod.node
        pods = self.pods.setdefault(node, {})
        before = pods.get(pod.uid)
        # The containers of a pod that crashes restart without end, which is not progress.
        if change.type != "MODIFIED" or before is None or _differs(before, pod):
            self.last_pod_change = self._clock.monotonic()
        if change.type == "DELETED":
            pods.pop(pod.uid, None)
            self._node_by_pod.pop(pod.name, None)
        else:
            pods[pod.uid] = pod
            self._node_by_pod[pod.name] = node
            if keys.LIFECYCLE_STATE in pod.metadata.labels:
                self._on_preparing_delete(pod)
        self._recount(node)

    def _recount(self, node: str) -> None:
        """Compute the state of one node again."""
        oracle, pods = self._oracle, self.pods[node].values()
        assert oracle is not None
        up = [pod for pod in pods if self._is_up(pod)]
        for pod in pods if not up and oracle.ds.min_ready_seconds else ():
            self._recount_later(node, _ready_since(pod) + oracle.ds.min_ready_seconds)
        updated = any(not self.is_old(pod.hash) for pod in up)
        if self._began is not None:
            time = round(self._clock.monotonic() - self._began, 3)
            self._on_node_state(time, node, state_of(pods, up, self.is_old))
        before = (len(self.updated), self._down)
        self._set_node_state(node, up=bool(up), updated=updated, two_pods=len(pods) > 1)
        if self._began is not None and before != (len(self.updated), self._down):
            self.changed_at = self._clock.monotonic()
            time = round(self.changed_at - self._began, 3)
            if self.curve[-1][0] == time:
                self.curve.pop()
            self.curve.append((time, len(self.updated), self._down))

    def _recount_later(self, node: str, at: float) -> None:
        """Recount when the node's pod has been ready for minReadySeconds."""
        if at > self._clock.now():
            self._loop.call_later(at - self._clock.now(), self._recount, node)

    def _set_node_state(self, node: str, *, up: bool, updated: bool, two_pods: bool) -> None:
        if node in self._initially_up and up != (node in self.up):
            self._down += -1 if up else 1
            self.most_down = max(self.most_down, self._down)
        _set_membership(self.up, node, up)
        if self._began is not None:
            _set_membership(self.updated, node, updated)
            _set_membership(self._with_two_pods, node, two_pods)
            self.most_doubled = max(self.most_doubled, len(self._with_two_pods))


def _differs(before: Pod, after: Pod) -> bool:
    """Whether more than the status of its containers has changed."""
    return before.metadata != after.metadata and (
        before.hash != after.hash
        or before.terminating != after.terminating
        or before.metadata.labels != after.metadata.labels
        or before.metadata.finalizers != after.metadata.finalizers
    )


def _ready_since(pod: Pod) -> float:
    """When Ready and the last of the readiness gates became True; 0 if one is not."""
    since = 0.0
    for kind in (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates)):
        condition = pod.condition(kind)
        if condition is None or condition.status != "True":
            return 0.0
        since = max(since, seconds(condition.last_transition_time) or 0.0)
    return since


def _set_membership(where: set[str], what: str, there: bool) -> None:
    if there:
        where.add(what)
    else:
        where.discard(what)
