"""What a controller may have seen when it decided: the states between its view and the commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, product
from typing import Final

from everynode.api.objects import Pod
from everynode.sim.invariants.referee import gate_closed, is_blocked, is_preparing
from everynode.sim.record import Commit, Record, Scene
from everynode.sim.scene import Scenes
from everynode.sim.shelf import PastPods, Pods, node_of

_MOST: Final = 200  # combinations that are tried before a decision is given the benefit of doubt

CONTROLLER: Final = "controller"


def by_controller(commit: Commit) -> bool:
    """Whether one of our controllers wrote this."""
    return commit.actor.startswith(CONTROLLER)


def owner_uid(pod: Pod) -> str:
    """The uid of whom a pod belongs to."""
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def pods_of(scene: Scene, node: str) -> tuple[Pod, ...]:
    """All pods on a node, whoever owns them."""
    pods = scene.pods
    if isinstance(pods, (Pods, PastPods)):
        return pods.on(node)
    return tuple(pod for pod in pods.values() if node_of(pod) == node)


def taken_pod(commit: Commit) -> Pod | None:
    """The pod that this commit takes out of service, as it was before."""
    before, after = commit.before, commit.after
    if commit.kind != "pods" or before is None or before.terminating or before.finished:
        return None
    if is_preparing(before) or is_blocked(before):
        return None
    if after is None or after.terminating or is_preparing(after) or is_blocked(after):
        return before  # type: ignore[no-any-return]
    if gate_closed(before):
        return None
    if gate_closed(after) and not before.metadata.annotations.inplace_state:
        return before  # type: ignore[no-any-return]
    if after.hash == before.hash:
        return None
    noted = before.metadata.annotations.inplace_state != after.metadata.annotations.inplace_state
    return before if noted or before.spec.containers != after.spec.containers else None


class Doubt(Exception):
    """So much may have been seen that nothing can be said against a decision."""


def views(record: Record, commit: Commit) -> Iterator[tuple[Scene, int]]:
    """States of the store on which the decision may rest, newest first, with their pods' version.

    Each kind comes over a watch of its own, so that the parts may be of different age. Raises Doubt
    when there are too many.
    """
    scenes = record.scenes
    before = scenes[-2]
    yield before, before.version  # nearly always this one is enough
    floors = _Floors(record, commit)
    if before.version > floors.highest:
        for scene in islice(reversed(scenes), 2, None):
            yield scene, scene.version
            if scene.version <= floors.highest:
                break
    yield from _mixed(scenes, floors, commit.actor)


class _Floors:
    """Down to which version each part may have been seen."""

    def __init__(self, record: Record, commit: Commit) -> None:
        assert commit.asked is not None
        # Who comes to lead lists everything before its first write.
        told, began = commit.asked.floors, record.terms.get(commit.actor, 0)
        self.nodes = max(told.get("nodes", 0), began)
        self.pods = max(told.get("pods", 0), began)
        self.revisions = max(told.get("controllerrevisions.apps", 0), began)
        self.sets = max(told.get(_kind_of_set(commit), 0), began)
        self.highest = max(self.nodes, self.pods, self.revisions, self.sets)


def _kind_of_set(commit: Commit) -> str:
    if commit.kind.startswith("daemonsets"):
        return commit.kind
    found = commit.after if commit.after is not None else commit.before
    owner = found.metadata.controller
    return f"daemonsets.{owner.group}" if owner is not None else ""


def _mixed(scenes: Scenes, floors: _Floors, actor: str) -> Iterator[tuple[Scene, int]]:
    parts = (
        scenes.states("pods", floors.pods),
        scenes.states("nodes", floors.nodes),
        scenes.states("sets", floors.sets),
        chain(
            scenes.states("revisions", floors.revisions),
            scenes.beside("revisions", floors.revisions, actor),
        ),
    )
    # Of no part more states are needed than there are combinations to be tried.
    each = (islice(states, _MOST + 1) for states in parts)
    for count, ((pods, version), nodes, sets, revisions) in enumerate(product(*each)):
        if count == _MOST:
            raise Doubt
        yield Scene(version, 0.0, nodes[0], pods, sets[0], revisions[0]), version


def taken_since(record: Record, commit: Commit, version: int) -> set[str]:
    """The pods that the same process took after a version, up to and with this commit."""
    found = set()
    for each in reversed(record.commits):
        if each.version <= version:
            break
        if each.actor == commit.actor:
            pod = taken_pod(each)
            if pod is not None:
                found.add(pod.uid)
    return found
