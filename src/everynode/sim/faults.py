"""Everything that can go wrong, as named values: which happenings stand for which fault.

Those of whole processes and servers are in `upheavals.py`, what keeps pods from going in
`holdups.py`. A list without a resource version is answered from the newest state by every API
server, so that a lagging one (F3) shows in its watches alone. Slow onlookers (F53) are outside the
simulation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.sim.plan import Happening

Draw = Callable[[random.Random, float, int], Happening]
_KINDS: Final = ("nodes", "pods", "controllerrevisions", "daemonsets")


class Fault:
    """One entry of the list of faults: its number, its name, and how one is drawn."""

    def __init__(self, id: str, title: str, draw: Draw, what: str) -> None:
        self.id = id
        self.title = title
        self.what = what  # the happening it is counted by
        self._draw = draw

    def draw(self, chance: random.Random, at: float, nodes: int) -> Happening:
        """One of this kind, some time around `at`."""
        return msgspec.structs.replace(self._draw(chance, at, nodes), fault=self.id)


def _of_call(what: str, **args: Any) -> Draw:
    return lambda chance, at, nodes: Happening(what, call=_call(chance), args=args)


def _call(chance: random.Random) -> int:
    """Small numbers are more likely: much is decided in the first requests."""
    return int(chance.triangular(0, 160, 20))


def timed(what: str, longest: float = 0.0, **args: Any) -> Draw:
    """Something at a time, for up to so many seconds."""

    def draw(chance: random.Random, at: float, nodes: int) -> Happening:
        seconds = round(chance.uniform(0.0, longest), 2) if longest else 0.0
        return Happening(what, at=at, seconds=seconds, args=args)

    return draw


def on_node(what: str, longest: float = 0.0, **args: Any) -> Draw:
    """Something that happens to one of the nodes."""

    def draw(chance: random.Random, at: float, nodes: int) -> Happening:
        seconds = round(chance.uniform(0.0, longest), 2) if longest else 0.0
        where = {"node": chance.randrange(nodes), **args}
        return Happening(what, at=at, seconds=seconds, args=where)

    return draw


def _of_kind(what: str, longest: float, **args: Any) -> Draw:
    def draw(chance: random.Random, at: float, nodes: int) -> Happening:
        kind = {"kind": chance.choice(_KINDS), **args}
        return Happening(what, at=at, seconds=round(chance.uniform(0.0, longest), 2), args=kind)

    return draw


def _refuse(chance: random.Random, at: float, nodes: int) -> Happening:
    status = chance.choice((409, 429, 500, 503, 504))
    return Happening("refuse", call=_call(chance), args={"status": status})


def _slow(chance: random.Random, at: float, nodes: int) -> Happening:
    seconds = round(chance.uniform(0.5, 15.0), 2)
    return Happening("slow-answer", call=_call(chance), seconds=seconds)


def _jump(chance: random.Random, at: float, nodes: int) -> Happening:
    return Happening("clock-jump", at=at, args={"by": chance.choice((-3600, -5, 5, 3600))})


def _taint(chance: random.Random, at: float, nodes: int) -> Happening:
    effect = chance.choice(("NoSchedule", "NoExecute"))
    return Happening("taint-node", at=at, args={"node": chance.randrange(nodes), "effect": effect})


def _images(words: str) -> Draw:
    return timed("quirk", images=f"agent:* {words}" if words else "")


def _join(chance: random.Random, at: float, nodes: int) -> Happening:
    name = f"late-{chance.randrange(100):02d}"
    return Happening("add-node", at=at, args={"node": name, "labels": {"canary": "true"}})


def _rolling(chance: random.Random, at: float, nodes: int) -> Happening:
    partition = chance.choice((0, 1, nodes, "50%", nodes // 2))
    spec = {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
    return Happening("apply", at=at, args={"spec": spec})


def _pause(chance: random.Random, at: float, nodes: int) -> Happening:
    spec = {"updateStrategy": {"rollingUpdate": {"paused": chance.random() < 0.6}}}
    return Happening("apply", at=at, args={"spec": spec})


def _limits(chance: random.Random, at: float, nodes: int) -> Happening:
    limit = chance.choice((1, 2, "34%", "100%"))
    spec = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": limit}}}
    return Happening("apply", at=at, args={"spec": spec})


def _update(chance: random.Random, at: float, nodes: int) -> Happening:
    return Happening("set-image", at=at, args={"image": f"agent:v{chance.randrange(2, 6)}"})


def _bad(chance: random.Random, at: float, nodes: int) -> Happening:
    word = chance.choice(("non-existent", "crash-loop", "never-ready", "slow-start", "run-once"))
    return Happening("set-image", at=at, args={"image": f"agent:{word}"})


def _recreate(chance: random.Random, at: float, nodes: int) -> Happening:
    how = chance.choice(("Background", "Foreground", "Orphan"))
    return Happening("recreate-set", at=at, seconds=2.0, args={"propagation": how})


def _delete_pod(chance: random.Random, at: float, nodes: int) -> Happening:
    args: dict[str, Any] = {"node": chance.randrange(nodes)}
    if chance.random() < 0.3:
        args["grace"] = 0
    return Happening("delete-pod", at=at, args=args)


FAULTS: Final = (
    Fault("F1", "crash before a request", _of_call("crash-before"), "crash-before"),
    Fault("F2", "crash after the commit", _of_call("crash-after"), "crash-after"),
    Fault("F3", "a lagging replica", timed("hold-watch", 60.0), "hold-watch"),
    Fault("F4", "cut off for longer than the lease", timed("cut-off", 40.0, who="controller-0"),
          "cut-off"),
    Fault("F5", "the clock jumps", _jump, "clock-jump"),
    Fault("F6", "a clean restart", timed("restart"), "restart"),
    Fault("F8", "events of one kind come late", _of_kind("hold-watch", 120.0), "hold-watch"),
    Fault("F9", "kinds overtake each other", _of_kind("hold-watch", 10.0), "hold-watch"),
    Fault("F10", "states in between are left out", _of_kind("hold-watch", 30.0, coalesce=True),
          "coalesce"),
    Fault("F11", "events come twice", timed("stutter", 60.0), "stutter"),
    Fault("F12", "a watch breaks in mid-object", timed("cut-watch", half=True), "cut-watch"),
    Fault("F13", "versions are too old", timed("gone"), "gone"),
    Fault("F14", "only a new list shows a deletion", _of_kind("hold-watch", 20.0, gone=True),
          "hold-watch"),
    Fault("F15", "a watch dies silently", _of_kind("silence", 200.0), "silence"),
    Fault("F16", "no bookmarks", timed("no-bookmarks", 300.0), "no-bookmarks"),
    Fault("F17", "an event from before comes again", _of_kind("stutter", 60.0), "stutter"),
    Fault("F18", "the server refuses", _refuse, "refuse"),
    Fault("F19", "nobody knows whether it happened", _of_call("lose-answer"), "lose-answer"),
    Fault("F19", "nobody knows whether it happened", _of_call("lose-request"), "lose-request"),
    Fault("F20", "admission denies pods", timed("deny-pods", 60.0), "deny-pods"),
    Fault("F21", "the quota is used up", timed("quota", 60.0), "quota"),
    Fault("F22", "the namespace is ending", timed("namespace-ending", 30.0), "namespace-ending"),
    Fault("F23", "no watch-lists, pages instead", timed("refuse-watch", 60.0, status=422,
          lists=True), "refuse-watch"),
    Fault("F24", "a slow server", _slow, "slow-answer"),
    Fault("F25", "an outage", timed("outage", 120.0), "outage"),
    Fault("F26", "a node falls silent", on_node("lose-node", 200.0), "lose-node"),
    Fault("F26", "a node is not ready", on_node("unready-node", 100.0), "unready-node"),
    Fault("F27", "a node comes back as another", on_node("replace-node", 10.0), "replace-node"),
    Fault("F28", "taints come", _taint, "taint-node"),
    Fault("F28", "taints go", on_node("untaint-node"), "untaint-node"),
    Fault("F29", "a node is cordoned", on_node("cordon-node"), "cordon-node"),
    Fault("F29", "a pod is evicted", on_node("evict-pod"), "evict-pod"),
    Fault("F30", "a pod fails", on_node("fail-pod"), "fail-pod"),
    Fault("F30", "a node is under pressure", on_node("press-node", 60.0), "press-node"),
    Fault("F31", "containers crash", _images("fail=crash"), "quirk"),
    Fault("F32", "readiness comes", _images(""), "quirk"),
    Fault("F32", "readiness goes", _images("fail=probe"), "quirk"),
    Fault("F33", "a bad image", _bad, "set-image"),
    Fault("F34", "a pod cannot go", on_node("stick-pod"), "stick-pod"),
    Fault("F35", "a kubelet restarts", on_node("lose-node", 5.0), "lose-node"),
    Fault("F36", "a node is slow", on_node("slow-node", 100.0, factor=30), "slow-node"),
    Fault("F37", "a zone is lost", timed("lose-zone", zone="zone-a"), "lose-zone"),
    Fault("F37", "lost nodes are back", timed("find-nodes"), "find-nodes"),
    Fault("F38", "nodes join", _join, "add-node"),
    Fault("F38", "a node leaves", on_node("remove-node"), "remove-node"),
    Fault("F39", "all pods are unready at once", _images("fail=probe"), "quirk"),
    Fault("F40", "an update", _update, "set-image"),
    Fault("F41", "another update at once", _update, "set-image"),
    Fault("F42", "back to the first revision", timed("set-image", image="agent:v1"), "set-image"),
    Fault("F43", "the partition changes", _rolling, "apply"),
    Fault("F43", "maxUnavailable changes", _limits, "apply"),
    Fault("F44", "pause and resume", _pause, "apply"),
    Fault("F45", "deleted and created anew", _recreate, "recreate-set"),
    Fault("F46", "a pod is deleted by hand", _delete_pod, "delete-pod"),
    Fault("F46", "a pod is relabelled", on_node("relabel-pod", 20.0), "relabel-pod"),
    Fault("F46", "a pod loses its owner", on_node("orphan-pod"), "orphan-pod"),
    Fault("F46", "a pod loses its hash", on_node("strip-hash"), "strip-hash"),
    Fault("F47", "a revision is deleted", timed("delete-revision"), "delete-revision"),
    Fault("F47", "a revision is renumbered", timed("edit-revision", number=7), "edit-revision"),
    Fault("F48", "somebody else writes the status", timed("write-status"), "write-status"),
    Fault("F50", "written in the older version", timed("touch-as-alpha"), "touch-as-alpha"),
)  # fmt: skip
