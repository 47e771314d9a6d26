"""What happened: every commit of the store and every request, and one hash over all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import Decoder
from everynode.api.objects import ControllerRevision, Lease, Node, Pod
from everynode.api.versions import decode_daemonset
from everynode.cluster.store import Change, Store
from everynode.kube.requests import Request
from everynode.sim.scene import Scene as Scene
from everynode.sim.scene import Scenes

_LEASES: Final = "leases.coordination.k8s.io"
Kept = Node | Pod | ControllerRevision | DaemonSet | Lease
_Decode = Callable[[bytes], Kept]
_DECODERS: Final[dict[str, _Decode]] = {
    "nodes": Decoder(Node).one,
    "pods": Decoder(Pod).one,
    "controllerrevisions.apps": Decoder(ControllerRevision).one,
    "daemonsets.apps": partial(decode_daemonset, flavour=Flavour.NATIVE),
    "daemonsets.apps.kruise.io": partial(decode_daemonset, flavour=Flavour.ADVANCED),
    _LEASES: Decoder(Lease).one,
}


class Asked(msgspec.Struct, frozen=True, gc=False):
    """One request as it reached the server."""

    actor: str
    request: Request
    time: float
    now: float  # the wall clock of whoever asked
    sent_at: float
    floors: Mapping[str, int] = {}  # what the asker surely knew of each kind when it decided
    clock_set_at: float = -inf  # when that wall clock was last set


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One step of history: who did what to which object."""

    version: int
    time: float
    kind: str
    type: str
    before: Any
    after: Any
    asked: Asked | None
    actor: str  # who wrote; empty for the server itself


class Record:
    """Keeps history, and tells whoever judges it."""

    def __init__(self, store: Store, time: Callable[[], float], *, keep: bool = True) -> None:
        self.acting: Asked | None = None
        self.commits: list[Commit] = []
        self.scenes = Scenes(self.commits)
        self.asked: list[Asked] = []
        self.judges: list[Callable[[Commit], None]] = []
        self.listeners: list[Callable[[Asked, int], None]] = []  # of requests
        self.births: dict[str, Commit] = {}  # of pods, by uid
        self.terms: dict[str, int] = {}  # the version at which a process last came to lead
        self.leader: str | None = None  # the last that did
        self.changed_at = 0.0  # when anything but nodes and leases last changed
        self._time = time
        self._hash = hashlib.sha256()  # what most processors can do by themselves
        self._keep = keep
        for kind, decode in _DECODERS.items():
            known: dict[str, Kept] = {}  # by the store's key
            store.observe(kind, partial(self._committed, kind, decode, known))

    @property
    def scene(self) -> Scene:
        """Everything there is now."""
        return self.scenes[-1]

    def digest(self) -> str:
        """One hash over every commit and every request so far."""
        return self._hash.hexdigest()[:32]

    def note(self, asked: Asked, status: int) -> None:
        """A request was answered."""
        request = asked.request
        text = f"{asked.time:.6f} {asked.actor} {request.method} {request.path} {status}\n"
        self._hash.update(text.encode() + request.body)
        for listener in self.listeners:
            listener(asked, status)

    def _committed(
        self, kind: str, decode: _Decode, known: dict[str, Kept], change: Change
    ) -> None:
        time, stored = self._time(), change.record
        version = stored.version
        self._hash.update(f"{time:.6f} {kind} {change.type} {version}\n".encode())
        self._hash.update(stored.body)
        if not self._keep:
            return
        before = known.get(stored.key)
        after = None
        if change.type == "DELETED":
            known.pop(stored.key, None)
        else:
            after = known[stored.key] = decode(stored.body)
        asked = self.acting
        actor = asked.actor if asked is not None else ""
        commit = Commit(version, time, kind, change.type, before, after, asked, actor)
        self.commits.append(commit)
        self.scenes.add(commit)
        self._remember(commit)
        for judge in self.judges:
            judge(commit)

    def _remember(self, commit: Commit) -> None:
        if commit.kind == "pods" and commit.before is None:
            self.births.setdefault(commit.after.uid, commit)
        if commit.kind == _LEASES and commit.after is not None:
            holder = commit.before.spec.holder_identity if commit.before is not None else ""
            if holder != commit.after.spec.holder_identity:
                self.terms[commit.actor] = commit.version
                self.leader = commit.actor
        if commit.kind not in ("nodes", _LEASES):
            self.changed_at = commit.time


_body_decoder: Final = msgspec.json.Decoder(dict[str, Any])


def body_of(request: Request) -> dict[str, Any]:
    """The JSON object a request carries; empty where it carries none."""
    if not request.body or request.body[:1] != b"{":
        return {}
    return _body_decoder.decode(request.body)
