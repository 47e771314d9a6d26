"""Possible views: the cluster states that a controller may have seen when it decided.

They lie between the state that its watches had certainly delivered and the commit itself. A
decision is right if one of these views justifies it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, product
from typing import Final

from everynode.api.objects import Pod
from everynode.sim.checks.inplace_progress import gate_closed
from everynode.sim.checks.oracle import is_marked_not_ready, is_preparing
from everynode.sim.history.cluster_state import ClusterState, StateHistory
from everynode.sim.history.record import Commit, WorldRecord
from everynode.sim.history.snapshots import PastPodIndex, PodIndex

_MAX_COMBINATIONS: Final = 200  # combinations of part states that are tried

CONTROLLER: Final = "controller"


def by_controller(commit: Commit) -> bool:
    """Whether one of our controllers made this commit."""
    return commit.actor.startswith(CONTROLLER)


def owner_uid(pod: Pod) -> str:
    """The uid of the pod's controlling owner, empty for an orphan."""
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def pods_on_node(cluster: ClusterState, node: str) -> tuple[Pod, ...]:
    """All pods on a node, of any owner."""
    pods = cluster.pods
    if isinstance(pods, (PodIndex, PastPodIndex)):
        return pods.on(node)
    return tuple(pod for pod in pods.values() if pod.node == node)


def disrupted_pod(commit: Commit) -> Pod | None:
    """The pod that this commit disrupts (deletes, marks or updates in place), as it was before."""
    before, after = commit.before, commit.after
    if commit.kind != "pods" or before is None or before.terminating or before.finished:
        return None
    if is_preparing(before) or is_marked_not_ready(before):
        return None
    if after is None or after.terminating or is_preparing(after) or is_marked_not_ready(after):
        return before  # type: ignore[no-any-return]
    if gate_closed(before):
        return None
    if gate_closed(after) and not before.metadata.annotations.inplace_state:
        return before  # type: ignore[no-any-return]
    if after.hash == before.hash:
        return None
    noted = before.metadata.annotations.inplace_state != after.metadata.annotations.inplace_state
    return before if noted or before.spec.containers != after.spec.containers else None


class TooManyViews(Exception):
    """There are too many possible views to check them all: the decision counts as right."""


def possible_views(record: WorldRecord, commit: Commit) -> Iterator[tuple[ClusterState, int]]:
    """States of the store on which the decision may rest, newest first, with their pods' version.

    Each kind has its own watch, so that the parts may be of different age. Raises
    TooManyViews when there are more than can be checked.
    """
    states = record.states
    before = states[-2]
    yield before, before.version  # this view nearly always suffices
    known_versions = _KnownVersions(record, commit)
    if before.version > known_versions.highest:
        for cluster in islice(reversed(states), 2, None):
            yield cluster, cluster.version
            if cluster.version <= known_versions.highest:
                break
    yield from _mixed_states(states, known_versions, commit.actor)


class _KnownVersions:
    """The oldest version of each part that may have been seen."""

    def __init__(self, record: WorldRecord, commit: Commit) -> None:
        assert commit.cause is not None
        # A new leader lists everything before its first write.
        known, began = commit.cause.known_versions, record.leader_since.get(commit.actor, 0)
        self.nodes = max(known.get("nodes", 0), began)
        self.pods = max(known.get("pods", 0), began)
        self.revisions = max(known.get("controllerrevisions.apps", 0), began)
        self.sets = max(known.get(_kind_of_set(commit), 0), began)
        self.highest = max(self.nodes, self.pods, self.revisions, self.sets)


def _kind_of_set(commit: Commit) -> str:
    if commit.kind.startswith("daemonsets"):
        return commit.kind
    found = commit.after if commit.after is not None else commit.before
    owner = found.metadata.controller
    return f"daemonsets.{owner.group}" if owner is not None else ""


def _mixed_states(
    states: StateHistory, known_versions: _KnownVersions, actor: str
) -> Iterator[tuple[ClusterState, int]]:
    parts = (
        states.part_states("pods", known_versions.pods),
        states.part_states("nodes", known_versions.nodes),
        states.part_states("sets", known_versions.sets),
        chain(
            states.part_states("revisions", known_versions.revisions),
            states.unsynced_states("revisions", known_versions.revisions, actor),
        ),
    )
    # No part needs more states than combinations are tried in all.
    each = (islice(states, _MAX_COMBINATIONS + 1) for states in parts)
    for count, ((pods, version), nodes, sets, revisions) in enumerate(product(*each)):
        if count == _MAX_COMBINATIONS:
            raise TooManyViews
        yield ClusterState(version, 0.0, nodes[0], pods, sets[0], revisions[0]), version


def disrupted_since(record: WorldRecord, commit: Commit, version: int) -> set[str]:
    """The pods that the same process disrupted after a version, up to and with this commit."""
    found = set()
    for each in reversed(record.commits):
        if each.version <= version:
            break
        if each.actor == commit.actor:
            pod = disrupted_pod(each)
            if pod is not None:
                found.add(pod.uid)
    return found
