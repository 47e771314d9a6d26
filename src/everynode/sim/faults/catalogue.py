"""The table of faults F1 to F57 (docs/rules.md): what can go wrong, and how a seed draws it.

Each entry has a number, a title, the action it is counted by, and a function that draws one such
action. There are several tables. Seeds draw from them by position, so the order of entries must
never change.

Every API server answers a list without a resource version from the newest state, so a lagging one
(F3) shows only in its watches. Slow watchers (F53) are outside the simulation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.api.keys import NODE_LIFECYCLE
from everynode.sim.plans.plan import Action

Draw = Callable[[random.Random, float, int], Action]
LONG: Final = 1800.0  # seconds; a plan with such a fault waits until it is over
_MAX_BEHIND: Final = 6  # events that a lagging replica is behind
_KINDS: Final = ("nodes", "pods", "controllerrevisions", "daemonsets")


class Fault:
    """One entry of the table: its number, its title, and how an action of this kind is drawn."""

    def __init__(self, id: str, title: str, draw: Draw, action: str) -> None:
        self.id = id
        self.title = title
        self.action = action  # the name of the action by which the fault is counted
        self._draw = draw

    def draw(self, rng: random.Random, at: float, nodes: int) -> Action:
        """Draw one action of this kind, at or around the time `at`."""
        return msgspec.structs.replace(self._draw(rng, at, nodes), fault=self.id)


def _on_request(name: str, **args: Any) -> Draw:
    return lambda rng, at, nodes: Action(name, at_request=_request_number(rng), args=args)


def _request_number(rng: random.Random) -> int:
    """Draw the number of a request; early ones are more likely, as they decide most."""
    return int(rng.triangular(0, 160, 20))


def at_time(name: str, longest: float = 0.0, **args: Any) -> Draw:
    """Draw an action at a time; if it lasts, for up to `longest` seconds."""

    def draw(rng: random.Random, at: float, nodes: int) -> Action:
        seconds = round(rng.uniform(0.0, longest), 2) if longest else 0.0
        return Action(name, at=at, seconds=seconds, args=args)

    return draw


def on_node(name: str, longest: float = 0.0, **args: Any) -> Draw:
    """Draw an action on one of the nodes."""

    def draw(rng: random.Random, at: float, nodes: int) -> Action:
        seconds = round(rng.uniform(0.0, longest), 2) if longest else 0.0
        where = {"node": rng.randrange(nodes), **args}
        return Action(name, at=at, seconds=seconds, args=where)

    return draw


def _on_watch(name: str, longest: float, **args: Any) -> Draw:
    def draw(rng: random.Random, at: float, nodes: int) -> Action:
        kind = {"kind": rng.choice(_KINDS), **args}
        return Action(name, at=at, seconds=round(rng.uniform(0.0, longest), 2), args=kind)

    return draw


def _refuse(rng: random.Random, at: float, nodes: int) -> Action:
    status = rng.choice((409, 429, 500, 503, 504))
    return Action("refuse", at_request=_request_number(rng), args={"status": status})


def _slow_answer(rng: random.Random, at: float, nodes: int) -> Action:
    seconds = round(rng.uniform(0.5, 15.0), 2)
    return Action("slow-answer", at_request=_request_number(rng), seconds=seconds)


def _clock_jump(rng: random.Random, at: float, nodes: int) -> Action:
    return Action("clock-jump", at=at, args={"by": rng.choice((-3600, -5, 5, 3600))})


def _taint(rng: random.Random, at: float, nodes: int) -> Action:
    effect = rng.choice(("NoSchedule", "NoExecute"))
    return Action("taint-node", at=at, args={"node": rng.randrange(nodes), "effect": effect})


def _image_quirk(words: str) -> Draw:
    return at_time("quirk", images=f"agent:* {words}" if words else "")


def _join_node(rng: random.Random, at: float, nodes: int) -> Action:
    name = f"late-{rng.randrange(100):02d}"
    return Action("add-node", at=at, args={"node": name, "labels": {"canary": "true"}})


def _set_partition(rng: random.Random, at: float, nodes: int) -> Action:
    partition = rng.choice((0, 1, nodes, "50%", nodes // 2))
    spec = {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
    return Action("apply", at=at, args={"spec": spec})


def _pause_rollout(rng: random.Random, at: float, nodes: int) -> Action:
    spec = {"updateStrategy": {"rollingUpdate": {"paused": rng.random() < 0.6}}}
    return Action("apply", at=at, args={"spec": spec})


def _set_max_unavailable(rng: random.Random, at: float, nodes: int) -> Action:
    limit = rng.choice((1, 2, "34%", "100%"))
    spec = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": limit}}}
    return Action("apply", at=at, args={"spec": spec})


def _update(rng: random.Random, at: float, nodes: int) -> Action:
    return Action("set-image", at=at, args={"image": f"agent:v{rng.randrange(2, 6)}"})


def _bad_image(rng: random.Random, at: float, nodes: int) -> Action:
    word = rng.choice(("non-existent", "crash-loop", "never-ready", "slow-start", "run-once"))
    return Action("set-image", at=at, args={"image": f"agent:{word}"})


def _recreate_set(rng: random.Random, at: float, nodes: int) -> Action:
    how = rng.choice(("Background", "Foreground", "Orphan"))
    return Action("recreate-set", at=at, seconds=2.0, args={"propagation": how})


def _delete_pod(rng: random.Random, at: float, nodes: int) -> Action:
    args: dict[str, Any] = {"node": rng.randrange(nodes)}
    if rng.random() < 0.3:
        args["grace"] = 0
    return Action("delete-pod", at=at, args=args)


def _lagging(rng: random.Random, at: float, nodes: int) -> Action:
    args = {"behind": rng.randint(1, _MAX_BEHIND), "who": "controller-0"}
    seconds = round(rng.uniform(5.0, 60.0), 2)
    return Action("lagging-replica", at=at, seconds=seconds, args=args)


def _one_released(rng: random.Random, at: float, nodes: int) -> Action:
    seconds = round(rng.uniform(5.0, 60.0), 2)
    return Action("release", at=at, seconds=seconds, args={"index": 0})


def _clock_drift(rng: random.Random, at: float, nodes: int) -> Action:
    return Action("clock-drift", at=at, args={"rate": rng.choice((0.5, 2.0))})


def _outage(rng: random.Random, at: float, nodes: int) -> Action:
    # Half an hour of retries is slow to simulate: only a fifth of these outages last that long.
    return Action("outage", at=at, seconds=LONG if rng.random() < 0.2 else 200.0)


def _pause_process(shortest: float, longest: float) -> Any:
    def draw(rng: random.Random, at: float, nodes: int) -> Action:
        return Action("freeze", at=at, seconds=round(rng.uniform(shortest, longest), 2))

    return draw


def _protect(rng: random.Random, at: float, nodes: int) -> Action:
    least = rng.choice((1, nodes - 1, nodes - 1, nodes))
    return Action("protect", at=at, args={"least": max(0, least)})


def _drain(rng: random.Random, at: float, nodes: int) -> Action:
    seconds = round(rng.uniform(10.0, 60.0), 2)
    return Action("drain-node", at=at, seconds=seconds, args={"node": rng.randrange(nodes)})


def _stick_pull_pods(rng: random.Random, at: float, nodes: int) -> Action:
    return Action("stick-pullers", at=at, seconds=round(rng.uniform(20.0, 90.0), 2))


def _refuse_image(rng: random.Random, at: float, nodes: int) -> Action:
    """Refuse the first update of every plan, from before it begins."""
    seconds = round(rng.uniform(20.0, 120.0), 2)
    return Action("refuse-image", at=at, seconds=seconds, args={"image": "agent:v2"})


def _lifecycle(rng: random.Random, at: float, nodes: int) -> Action:
    args = {"node": rng.randrange(nodes), "condition": rng.choice(NODE_LIFECYCLE)}
    seconds = round(rng.uniform(0.1, 60.0), 2)
    return Action("set-lifecycle", at=at, seconds=seconds, args=args)


def _shutdown(rng: random.Random, at: float, nodes: int) -> Action:
    args = {"node": rng.randrange(nodes), "value": rng.choice(("true", "unannounced"))}
    seconds = round(rng.uniform(5.0, 60.0), 2)
    return Action("shut-node-down", at=at, seconds=seconds, args=args)


def _fill(rng: random.Random, at: float, nodes: int) -> Action:
    args = {"node": rng.randrange(nodes), "free": rng.choice((0, 99, 100, 250, 500))}
    return Action("fill-node", at=at, seconds=round(rng.uniform(20.0, 300.0), 2), args=args)


def _skew(rng: random.Random, at: float, nodes: int) -> Action:
    # Not far ahead: a new process counts times in the future from its own start, and so writes a
    # status at rest. tests/sim/health_plans.py has nodes that are an hour ahead.
    args = {"node": rng.randrange(nodes), "by": rng.choice((-3600, -300, -40, 40))}
    return Action("skew-node", at=at, args=args)


# --- The tables -----------------------------------------------------------------------------------

# Drawn by nearly every seed.
COMMON_FAULTS: Final = (
    Fault("F1", "crash before a request", _on_request("crash-before"), "crash-before"),
    Fault("F2", "crash after the commit", _on_request("crash-after"), "crash-after"),
    Fault("F3", "a lagging replica", at_time("hold-watch", 60.0), "hold-watch"),
    Fault("F4", "cut off for longer than the lease", at_time("cut-off", 40.0, who="controller-0"),
          "cut-off"),
    Fault("F5", "the clock jumps", _clock_jump, "clock-jump"),
    Fault("F6", "a clean restart", at_time("restart"), "restart"),
    Fault("F8", "events of one kind come late", _on_watch("hold-watch", 120.0), "hold-watch"),
    Fault("F9", "kinds overtake each other", _on_watch("hold-watch", 10.0), "hold-watch"),
    Fault("F10", "states in between are left out", _on_watch("hold-watch", 30.0, coalesce=True),
          "coalesce"),
    Fault("F11", "events come twice", at_time("stutter", 60.0), "stutter"),
    Fault("F12", "a watch breaks in mid-object", at_time("cut-watch", half=True), "cut-watch"),
    Fault("F13", "versions are too old", at_time("gone"), "gone"),
    Fault("F14", "only a new list shows a deletion", _on_watch("hold-watch", 20.0, gone=True),
          "hold-watch"),
    Fault("F15", "a watch dies silently", _on_watch("silence", 200.0), "silence"),
    Fault("F16", "no bookmarks", at_time("no-bookmarks", 300.0), "no-bookmarks"),
    Fault("F17", "an event from before comes again", _on_watch("stutter", 60.0), "stutter"),
    Fault("F18", "the server refuses", _refuse, "refuse"),
    Fault("F19", "it is unknown whether it happened", _on_request("lose-answer"), "lose-answer"),
    Fault("F19", "it is unknown whether it happened", _on_request("lose-request"), "lose-request"),
    Fault("F20", "admission denies pods", at_time("deny-pods", 60.0), "deny-pods"),
    Fault("F21", "the quota is used up", at_time("quota", 60.0), "quota"),
    Fault("F22", "the namespace is ending", at_time("namespace-ending", 30.0), "namespace-ending"),
    Fault("F23", "no watch-lists, pages instead", at_time("refuse-watch", 60.0, status=422,
          lists=True), "refuse-watch"),
    Fault("F24", "a slow server", _slow_answer, "slow-answer"),
    Fault("F25", "an outage", at_time("outage", 120.0), "outage"),
    Fault("F26", "a node falls silent", on_node("lose-node", 200.0), "lose-node"),
    Fault("F26", "a node is not ready", on_node("unready-node", 100.0), "unready-node"),
    Fault("F27", "a node comes back as another", on_node("replace-node", 10.0), "replace-node"),
    Fault("F28", "taints come", _taint, "taint-node"),
    Fault("F28", "taints go", on_node("untaint-node"), "untaint-node"),
    Fault("F29", "a node is cordoned", on_node("cordon-node"), "cordon-node"),
    Fault("F29", "a pod is evicted", on_node("evict-pod"), "evict-pod"),
    Fault("F30", "a pod fails", on_node("fail-pod"), "fail-pod"),
    Fault("F30", "a node is under pressure", on_node("press-node", 60.0), "press-node"),
    Fault("F31", "containers crash", _image_quirk("fail=crash"), "quirk"),
    Fault("F32", "readiness comes", _image_quirk(""), "quirk"),
    Fault("F32", "readiness goes", _image_quirk("fail=probe"), "quirk"),
    Fault("F33", "a bad image", _bad_image, "set-image"),
    Fault("F34", "a pod cannot be removed", on_node("stick-pod"), "stick-pod"),
    Fault("F35", "a kubelet restarts", on_node("lose-node", 5.0), "lose-node"),
    Fault("F36", "a node is slow", on_node("slow-node", 100.0, factor=30), "slow-node"),
    Fault("F37", "a zone is lost", at_time("lose-zone", zone="zone-a"), "lose-zone"),
    Fault("F37", "lost nodes are back", at_time("find-nodes"), "find-nodes"),
    Fault("F38", "nodes join", _join_node, "add-node"),
    Fault("F38", "a node leaves", on_node("remove-node"), "remove-node"),
    Fault("F39", "all pods are unready at once", _image_quirk("fail=probe"), "quirk"),
    Fault("F40", "an update", _update, "set-image"),
    Fault("F41", "another update at once", _update, "set-image"),
    Fault("F42", "back to the first revision", at_time("set-image", image="agent:v1"), "set-image"),
    Fault("F43", "the partition changes", _set_partition, "apply"),
    Fault("F43", "maxUnavailable changes", _set_max_unavailable, "apply"),
    Fault("F44", "pause and resume", _pause_rollout, "apply"),
    Fault("F45", "deleted and created anew", _recreate_set, "recreate-set"),
    Fault("F46", "a pod is deleted by hand", _delete_pod, "delete-pod"),
    Fault("F46", "a pod is relabelled", on_node("relabel-pod", 20.0), "relabel-pod"),
    Fault("F46", "a pod loses its owner", on_node("orphan-pod"), "orphan-pod"),
    Fault("F46", "a pod loses its hash", on_node("strip-hash"), "strip-hash"),
    Fault("F47", "a revision is deleted", at_time("delete-revision"), "delete-revision"),
    Fault("F47", "a revision is renumbered", at_time("edit-revision", number=7), "edit-revision"),
    Fault("F48", "another client writes the status", at_time("write-status"), "write-status"),
    Fault("F50", "written in the older version", at_time("touch-as-alpha"), "touch-as-alpha"),
)  # fmt: skip

# Drawn by about a third of the seeds: faults of whole processes, servers and node groups.
PROCESS_FAULTS: Final = (
    Fault("F3", "a start at a lagging replica", _lagging, "lagging-replica"),
    Fault("F4", "a pause longer than the lease", _pause_process(16.0, 45.0), "freeze"),
    Fault("F5", "the clock runs at another speed", _clock_drift, "clock-drift"),
    Fault("F6", "slow reconciles", _pause_process(0.2, 5.0), "freeze"),
    Fault("F7", "another table of defaults, and back", at_time("upgrade", 40.0), "upgrade"),
    Fault("F7", "one controller of the next release", _one_released, "release"),
    Fault("F20", "admission changes pods", at_time("mutate-pods", 90.0), "mutate-pods"),
    Fault("F20", "admission takes too long", at_time("slow-admission", 60.0), "slow-admission"),
    Fault("F23", "pages expire", at_time("expiring-pages", 90.0), "expiring-pages"),
    Fault("F25", "an outage of up to half an hour", _outage, "outage"),
    Fault("F36", "an image does not come", at_time("quirk", images="agent:v* fail=stuck"), "quirk"),
    Fault(
        "F36",
        "a node does not react for long",
        on_node("slow-node", 300.0, factor=200),
        "slow-node",
    ),
    Fault("F38", "many nodes join at once", at_time("mass-join", count=12), "mass-join"),
    Fault("F49", "another set with the same selector", at_time("overlap"), "overlap"),
    Fault(
        "F51", "the CRD is removed and installed anew", at_time("remove-crd", 60.0), "remove-crd"
    ),
)

# Faults that keep pods from being deleted.
PROTECTED: Final = Fault("F29", "a disruption budget", _protect, "protect")
DRAINED: Final = Fault("F29", "a node is drained", _drain, "drain-node")
STUCK_PULL_PODS: Final = Fault(
    "F52", "pull pods cannot be removed", _stick_pull_pods, "stick-pullers"
)
DELETION_BLOCKERS: Final = (PROTECTED, DRAINED, STUCK_PULL_PODS)

# A policy that knows the versions.
REFUSED_VERSION: Final = Fault("F54", "a policy refuses a version", _refuse_image, "refuse-image")

# Nodes in maintenance, by their lifecycle conditions.
MAINTENANCE_FAULTS: Final = (
    Fault("F55", "a node is in maintenance", _lifecycle, "set-lifecycle"),
    Fault("F55", "a node is in maintenance", _lifecycle, "set-lifecycle"),
    Fault("F55", "a node shuts down gracefully", _shutdown, "shut-node-down"),
)

# Foreign pods that take what a node has.
FULL_NODE: Final = Fault("F56", "a node is full", _fill, "fill-node")

# The clock of a node is ahead or behind from some time on. It stays wrong when the faults end.
SKEWED_CLOCK: Final = Fault("F57", "the clock of a node is wrong", _skew, "skew-node")

ALL_FAULTS: Final = (
    *COMMON_FAULTS,
    *PROCESS_FAULTS,
    *DELETION_BLOCKERS,
    REFUSED_VERSION,
    *MAINTENANCE_FAULTS,
    FULL_NODE,
    SKEWED_CLOCK,
)
