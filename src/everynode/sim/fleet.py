"""What the nodes run, followed commit by commit: who is up, who is updated, how many are down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import Decoder
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.times import seconds
from everynode.api.versions import decode_daemonset
from everynode.cluster.store import Change, Store
from everynode.sim.clock import SimClock
from everynode.sim.invariants.referee import Referee, node_of
from everynode.sim.loop import SimLoop
from everynode.sim.record import Scene

_SETS: Final = {
    "daemonsets.apps": Flavour.NATIVE,
    "daemonsets.apps.kruise.io": Flavour.ADVANCED,
}
_REVISIONS: Final = "controllerrevisions.apps"
_NOWHERE: Final = Scene(0, 0.0)
_decode_pod: Final = Decoder(Pod).one  # what the controller decodes, too: done once for both
_decode_node: Final = Decoder(Node).one
_decode_revision: Final = Decoder(ControllerRevision).one


class Fleet:
    """Follows one DaemonSet over all nodes."""

    def __init__(self, store: Store, loop: SimLoop, clock: SimClock) -> None:
        self.pods: dict[str, dict[str, Pod]] = {}  # by node, by uid
        self.up: set[str] = set()
        self.updated: set[str] = set()  # up, at another revision than in the beginning
        self.changed_at = 0.0  # when a node last went up, down or to the new revision
        self.stirred_at = 0.0  # when anything last happened to a pod
        self.most_down = 0
        self.most_doubled = 0
        self.curve: list[tuple[float, int, int]] = []  # time, updated, down
        self.set: DaemonSet | None = None
        self.preparing: Callable[[Pod], None] = lambda pod: None  # hears of pods at their hook
        self._places: dict[str, str] = {}  # of pods, by name
        self._nodes: dict[str, bytes] = {}
        self._revisions: dict[str, bytes] = {}
        self._old: frozenset[str] = frozenset()
        self._judged: frozenset[str] = frozenset()  # nodes that were up in the beginning
        self._down = 0
        self._doubled: set[str] = set()
        self._began: float | None = None
        self._judge: Referee | None = None  # who says which pods are up
        self._loop, self._clock = loop, clock
        store.observe("pods", self._pod_changed)
        store.observe("nodes", self._keep(self._nodes))
        store.observe(_REVISIONS, self._keep(self._revisions))
        for kind, flavour in _SETS.items():
            store.observe(kind, partial(self._set_changed, flavour))

    # --- What is asked ---------------------------------------------------------------------------

    def begin(self) -> None:
        """From now on every node that is up counts when it goes down."""
        self._began = self.changed_at = self.stirred_at = self._clock.monotonic()
        self._judged = frozenset(self.up)
        self._old = frozenset(pod.hash for _, pod in self._all())
        self.updated.clear()
        self.curve = [(0.0, 0, 0)]

    def is_old(self, hash: str) -> bool:
        """Whether this revision was there before the update."""
        return hash in self._old

    def nodes(self) -> dict[str, Node]:
        """All nodes as they are now."""
        return {name: _decode_node(body) for name, body in sorted(self._nodes.items())}

    def node_of(self, pod: str) -> str:
        """The node of a pod by the pod's name."""
        return self._places.get(pod, "")

    def referee(self) -> Referee:
        """Who counts the rules once more, on the present state."""
        assert self.set is not None
        pods = {pod.uid: pod for _, pod in self._all()}
        revisions = {name: _decode_revision(body) for name, body in self._revisions.items()}
        now = self._clock.monotonic()
        scene = Scene(0, now, self.nodes(), pods, {self.set.uid: self.set}, revisions)
        return Referee(scene, self.set, self._clock.now())

    def _all(self) -> Iterator[tuple[str, Pod]]:
        return ((node, pod) for node, pods in self.pods.items() for pod in pods.values())

    # --- What is told ----------------------------------------------------------------------------

    def _keep(self, bodies: dict[str, bytes]) -> Callable[[Change], None]:
        def changed(change: Change) -> None:
            if change.type == "DELETED":
                bodies.pop(change.record.name, None)
            else:
                bodies[change.record.name] = change.record.body

        return changed

    def _set_changed(self, flavour: Flavour, change: Change) -> None:
        self.set = decode_daemonset(change.record.body, flavour=flavour)
        self._judge = Referee(_NOWHERE, self.set, 0.0)

    def _pod_changed(self, change: Change) -> None:
        pod = _decode_pod(change.record.body)
        if pod.metadata.controller is None or keys.PULLER in pod.metadata.labels:
            return
        self.stirred_at = self._clock.monotonic()
        node = node_of(pod)
        there = self.pods.setdefault(node, {})
        if change.type == "DELETED":
            there.pop(pod.uid, None)
            self._places.pop(pod.name, None)
        else:
            there[pod.uid] = pod
            self._places[pod.name] = node
            if keys.LIFECYCLE_STATE in pod.metadata.labels:
                self.preparing(pod)
        self._look(node)

    def _look(self, node: str) -> None:
        """Count one node anew."""
        judge, pods = self._judge, self.pods[node].values()
        assert judge is not None
        judge.now = self._clock.now()
        up = [pod for pod in pods if judge.is_up(pod)]
        for pod in pods if not up and judge.ds.min_ready_seconds else ():
            self._look_again(node, _ready_since(pod) + judge.ds.min_ready_seconds)
        updated = any(not self.is_old(pod.hash) for pod in up)
        before = (len(self.updated), self._down)
        self._move(node, up=bool(up), updated=updated, doubled=len(pods) > 1)
        if self._began is not None and before != (len(self.updated), self._down):
            self.changed_at = self._clock.monotonic()
            time = round(self.changed_at - self._began, 3)
            if self.curve[-1][0] == time:
                self.curve.pop()
            self.curve.append((time, len(self.updated), self._down))

    def _look_again(self, node: str, at: float) -> None:
        """Look once more when the node's pod has been ready for long enough."""
        if at > self._clock.now():
            self._loop.call_later(at - self._clock.now(), self._look, node)

    def _move(self, node: str, *, up: bool, updated: bool, doubled: bool) -> None:
        if node in self._judged and up != (node in self.up):
            self._down += -1 if up else 1
            self.most_down = max(self.most_down, self._down)
        _put(self.up, node, up)
        if self._began is not None:
            _put(self.updated, node, updated)
            _put(self._doubled, node, doubled)
            self.most_doubled = max(self.most_doubled, len(self._doubled))


def _ready_since(pod: Pod) -> float:
    """When the last of the conditions came true; 0 where one is not."""
    since = 0.0
    for kind in (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates)):
        condition = pod.condition(kind)
        if condition is None or condition.status != "True":
            return 0.0
        since = max(since, seconds(condition.last_transition_time) or 0.0)
    return since


def _put(where: set[str], what: str, there: bool) -> None:
    if there:
        where.add(what)
    else:
        where.discard(what)
