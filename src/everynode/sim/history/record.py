"""WorldRecord: every commit and every request of a world, and one hash over all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import ControllerRevision, Lease, Node, NodeStatus, Pod
from everynode.api.versions import decode_daemonset
from everynode.apiserver.storage.store import Change, Store
from everynode.kube.requests import Request
from everynode.kube.watch.decode import Decoder
from everynode.sim.engine.clock import EPOCH
from everynode.sim.history.cluster_state import ClusterState, StateHistory

NAMESPACE: Final = "default"  # the namespace of every DaemonSet
_REVISIONS: Final = "controllerrevisions.apps"
_LEASES: Final = "leases.coordination.k8s.io"


class _NodeStatus(NodeStatus, frozen=True):
    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class RecordedNode(Node, frozen=True):
    """A node with the resources that its pods may request."""

    status: _NodeStatus = _NodeStatus()


RecordedObject = Node | Pod | ControllerRevision | DaemonSet | Lease
_Decode = Callable[[bytes], RecordedObject]
_DECODERS: Final[dict[str, _Decode]] = {
    "nodes": Decoder(RecordedNode).one,
    "pods": Decoder(Pod).one,
    _REVISIONS: Decoder(ControllerRevision).one,
    "daemonsets.apps": partial(decode_daemonset, flavour=Flavour.NATIVE),
    "daemonsets.apps.kruise.io": partial(decode_daemonset, flavour=Flavour.ADVANCED),
    _LEASES: Decoder(Lease).one,
}
_OWNED: Final = ("pods", _REVISIONS)


class RecordedRequest(msgspec.Struct, frozen=True, gc=False):
    """One request as it reached the server."""

    actor: str
    request: Request
    time: float
    now: float  # the wall clock of the process that sent it
    sent_at: float
    known_versions: Mapping[str, int] = {}  # by kind: what the process surely knew when it decided
    clock_set_at: float = -inf  # when that wall clock was last set

    max_clock_lead: float = 0.0  # the most by which any clock has been ahead until then
    refused_by: str = ""  # the fault that refused it instead of the server

    @property
    def evaluated_at(self) -> float:
        """The time by which minReadySeconds and pauses are checked: the latest any clock has shown.

        To a clock that is behind, or was ahead and is corrected, recorded timestamps lie in the
        future. They then count from when they are seen; waiting for the clock is not required.
        """
        return max(self.now, EPOCH + self.time + self.max_clock_lead)

    @property
    def sees_future(self) -> bool:
        """Whether recorded timestamps may lie in the future of the sender's clock."""
        return self.evaluated_at > self.now + 0.001


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One change of one object, with the request that caused it."""

    version: int
    time: float
    kind: str
    type: str
    before: Any
    after: Any
    cause: RecordedRequest | None
    actor: str  # the process that wrote; empty for the server itself


class WorldRecord:
    """Keeps the history of a world and calls the registered checks."""

    def __init__(self, store: Store, time: Callable[[], float], *, keep: bool = True) -> None:
        self.current_request: RecordedRequest | None = None
        self.commits: list[Commit] = []
        self.states = StateHistory(self.commits)
        self.requests: list[RecordedRequest] = []
        self.on_commit: list[Callable[[Commit], None]] = []
        # Called with every request and its status.
        self.on_request: list[Callable[[RecordedRequest, int], None]] = []
        self.created: dict[str, Commit] = {}  # the first commit of each pod, by uid
        self.forged: set[str] = set()  # hashes of revisions that a user created
        # By process: the version at which it last became leader.
        self.leader_since: dict[str, int] = {}
        self.leader: str | None = None  # the process that last became leader
        self.changed_at = 0.0  # when anything but nodes and leases last changed
        self._time = time
        self.max_clock_lead = 0.0  # the most by which any clock has been ahead
        self._hash = hashlib.sha256()  # fast: most processors have instructions for it
        self._keep = keep
        for kind, decode in _DECODERS.items():
            known: dict[str, RecordedObject] = {}  # by store key
            store.observe(kind, partial(self._committed, kind, decode, known))

    @property
    def cluster(self) -> ClusterState:
        """The state of the cluster now."""
        return self.states[-1]

    def digest(self) -> str:
        """One hash over every commit and every request so far."""
        return self._hash.hexdigest()[:32]

    def note(self, cause: RecordedRequest, status: int) -> None:
        """Record a request and the status of its response."""
        request = cause.request
        text = f"{cause.time:.6f} {cause.actor} {request.method} {request.path} {status}\n"
        self._hash.update(text.encode() + request.body)
        for listener in self.on_request:
            listener(cause, status)

    def _committed(
        self, kind: str, decode: _Decode, known: dict[str, RecordedObject], change: Change
    ) -> None:
        time, stored = self._time(), change.record
        version = stored.version
        self._hash.update(f"{time:.6f} {kind} {change.type} {version}\n".encode())
        self._hash.update(stored.body)
        if not self._keep or (kind in _OWNED and stored.namespace != NAMESPACE):
            return  # objects in other namespaces belong to no DaemonSet
        before = known.get(stored.key)
        after = None
        if change.type == "DELETED":
            known.pop(stored.key, None)
        else:
            after = known[stored.key] = decode(stored.body)
        cause = self.current_request
        actor = cause.actor if cause is not None else ""
        commit = Commit(version, time, kind, change.type, before, after, cause, actor)
        self.commits.append(commit)
        self.states.add(commit)
        self._remember(commit)
        for callback in self.on_commit:
            callback(commit)

    def _remember(self, commit: Commit) -> None:
        if commit.kind == "pods" and commit.before is None:
            self.created.setdefault(commit.after.uid, commit)
        if commit.kind == _REVISIONS and commit.before is None and commit.actor == "person":
            self.forged.add(commit.after.metadata.labels.get(REVISION_HASH, ""))
        if commit.kind == _LEASES and commit.after is not None:
            holder = commit.before.spec.holder_identity if commit.before is not None else ""
            if holder != commit.after.spec.holder_identity:
                self.leader_since[commit.actor] = commit.version
                self.leader = commit.actor
        if commit.kind not in ("nodes", _LEASES):
            self.changed_at = commit.time


_body_decoder: Final = msgspec.json.Decoder(dict[str, Any])


def request_body(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body; empty if there is none."""
    if not request.body or request.body[:1] != b"{":
        return {}
    return _body_decoder.decode(request.body)
