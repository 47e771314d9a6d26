"""ClusterState: all objects at one version, now or at any earlier commit.

Earlier states are views on the current one with later commits undone, built on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.sim.history.snapshots import PastMapping, PastPodIndex, PodIndex

if TYPE_CHECKING:
    from everynode.sim.history.record import Commit

_BY_NAME: Final = ("nodes", "controllerrevisions.apps")
_PART: Final = {  # the field of ClusterState that holds a kind
    "nodes": "nodes",
    "pods": "pods",
    "daemonsets.apps": "sets",
    "daemonsets.apps.kruise.io": "sets",
    "controllerrevisions.apps": "revisions",
}


class ClusterState(msgspec.Struct, frozen=True, gc=False):
    """All objects at one version."""

    version: int
    time: float
    nodes: Mapping[str, Node] = msgspec.field(default_factory=dict)
    pods: Mapping[str, Pod] = msgspec.field(default_factory=PodIndex)  # by uid
    sets: Mapping[str, DaemonSet] = msgspec.field(default_factory=dict)  # by uid
    revisions: Mapping[str, ControllerRevision] = msgspec.field(default_factory=dict)  # by name


class StateHistory:
    """The cluster states up to the current one. Each of them is valid until the next commit.

    Only the current state is kept: checks rarely go back further than one commit.
    """

    def __init__(self, commits: list[Commit]) -> None:
        self._commits = commits
        self._pods = PodIndex()
        self._now = ClusterState(0, 0.0, pods=self._pods)
        self._before: ClusterState | None = None  # the state before the last commit, once asked for
        self._changes: dict[str, list[Commit]] = {}  # by part

    def __len__(self) -> int:
        return len(self._commits) + 1

    def __getitem__(self, index: int) -> ClusterState:
        """The current state at -1, the state before the last commit at -2; others are slow."""
        if index == -1:
            return self._now
        if index == -2 and self._commits:
            if self._before is None:
                self._before = self._earlier(self._now, 1)
            return self._before
        return list(self.__reversed__())[::-1][index]

    def __reversed__(self) -> Iterator[ClusterState]:
        cluster = self._now
        yield cluster
        for back in range(1, len(self)):
            cluster = self._earlier(cluster, back) if back > 1 else self[-2]
            yield cluster

    def part_states(self, part: str, floor: int) -> Iterator[tuple[Any, int]]:
        """Earlier states of one part (pods, nodes, ...), newest first, down to the version `floor`.

        Each comes with a version at which it held; the first is the state before the last commit.
        """
        cluster = self[-2]
        state = getattr(cluster, part)
        yield state, cluster.version
        for commit in reversed(self._changes.get(part, ())):
            if commit.version <= floor:
                return
            if commit.version <= cluster.version:
                state = _undo(state, commit)
                yield state, commit.version - 1

    def unsynced_states(self, part: str, floor: int, actor: str) -> Iterator[tuple[Any, int]]:
        """States that never existed in the store but that a process can see, newest first.

        A process knows its own writes from their responses, before its watch shows it the changes
        that other clients made earlier.
        """
        known = self[-2].version
        state, own = getattr(self[-2], part), set()
        for commit in reversed(self._changes.get(part, ())):
            if commit.version <= floor:
                return
            if commit.version > known:
                continue
            if commit.actor == actor:
                own.add(_key_of(commit))
            elif _key_of(commit) not in own:
                state = _undo(state, commit)
                if own:
                    yield state, commit.version - 1

    def add(self, commit: Commit) -> None:
        """Add the last commit."""
        now, part = self._now, _PART.get(commit.kind)
        if part == "pods":
            self._pods.change(commit.before, commit.after)
        elif part is not None:
            objects = getattr(now, part)
            if commit.after is None:
                del objects[_key_of(commit)]
            else:
                objects[_key_of(commit)] = commit.after
        if part is not None:
            self._changes.setdefault(part, []).append(commit)
        self._now = ClusterState(
            commit.version, commit.time, now.nodes, now.pods, now.sets, now.revisions
        )
        self._before = None

    def _earlier(self, cluster: ClusterState, back: int) -> ClusterState:
        """The state before the commit `back` steps ago, from the state after that commit."""
        commits = self._commits
        version, time = 0, 0.0
        if back < len(commits):
            version, time = commits[-back - 1].version, commits[-back - 1].time
        part = _PART.get(commits[-back].kind)
        changed = {part: _undo(getattr(cluster, part), commits[-back])} if part is not None else {}
        return replace(cluster, version=version, time=time, **changed)


def _undo(state: Any, commit: Commit) -> Any:
    """A part of the state before a commit that changed it."""
    key = _key_of(commit)
    if isinstance(state, PastMapping):
        return state.one_step_back(key, commit.before)
    past = PastPodIndex if isinstance(state, PodIndex) else PastMapping
    return past(state, {key: commit.before})


def _key_of(commit: Commit) -> str:
    """The key of an object in its part: name or uid."""
    meta = (commit.before if commit.after is None else commit.after).metadata
    key: str = meta.name if commit.kind in _BY_NAME else meta.uid
    return key
