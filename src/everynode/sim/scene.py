"""What there is now and what there was at every commit before, made again when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.sim.shelf import Past, PastPods, Pods

if TYPE_CHECKING:
    from everynode.sim.record import Commit

_BY_NAME: Final = ("nodes", "controllerrevisions.apps")
_PART: Final = {  # of a scene, to which a kind belongs
    "nodes": "nodes",
    "pods": "pods",
    "daemonsets.apps": "sets",
    "daemonsets.apps.kruise.io": "sets",
    "controllerrevisions.apps": "revisions",
}


class Scene(msgspec.Struct, frozen=True, gc=False):
    """Everything there is at one version."""

    version: int
    time: float
    nodes: Mapping[str, Node] = msgspec.field(default_factory=dict)
    pods: Mapping[str, Pod] = msgspec.field(default_factory=Pods)  # by uid
    sets: Mapping[str, DaemonSet] = msgspec.field(default_factory=dict)  # by uid
    revisions: Mapping[str, ControllerRevision] = msgspec.field(default_factory=dict)  # by name


class Scenes:
    """The states of history up to the present one. Each of them holds until the next commit.

    Only the present is kept: judges rarely look back further than over one commit.
    """

    def __init__(self, commits: list[Commit]) -> None:
        self._commits = commits
        self._pods = Pods()
        self._now = Scene(0, 0.0, pods=self._pods)
        self._before: Scene | None = None  # the last commit, once somebody has asked
        self._changes: dict[str, list[Commit]] = {}  # by part

    def __len__(self) -> int:
        return len(self._commits) + 1

    def __getitem__(self, index: int) -> Scene:
        """The present is -1, what was before the last commit -2; there is no other quick way."""
        if index == -1:
            return self._now
        if index == -2 and self._commits:
            if self._before is None:
                self._before = self._earlier(self._now, 1)
            return self._before
        return list(self.__reversed__())[::-1][index]

    def __reversed__(self) -> Iterator[Scene]:
        scene = self._now
        yield scene
        for back in range(1, len(self)):
            scene = self._earlier(scene, back) if back > 1 else self[-2]
            yield scene

    def states(self, part: str, floor: int) -> Iterator[tuple[Any, int]]:
        """What a part was before the last commit, and at each one back to a version, newest first.

        With every state comes a version at which it was so.
        """
        scene = self[-2]
        state = getattr(scene, part)
        yield state, scene.version
        for commit in reversed(self._changes.get(part, ())):
            if commit.version <= floor:
                return
            if commit.version <= scene.version:
                state = _undo(state, commit)
                yield state, commit.version - 1

    def beside(self, part: str, floor: int, actor: str) -> Iterator[tuple[Any, int]]:
        """States that never were and can be seen all the same, newest first.

        A process knows what it wrote by the answers, and not yet what others had changed before.
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
        """One more step of history, the last of the commits."""
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
        self._now = Scene(commit.version, commit.time, now.nodes, now.pods, now.sets, now.revisions)
        self._before = None

    def _earlier(self, scene: Scene, back: int) -> Scene:
        """What there was before the commit so many steps back, made of what there was after it."""
        commits = self._commits
        version, time = 0, 0.0
        if back < len(commits):
            version, time = commits[-back - 1].version, commits[-back - 1].time
        part = _PART.get(commits[-back].kind)
        changed = {part: _undo(getattr(scene, part), commits[-back])} if part is not None else {}
        return replace(scene, version=version, time=time, **changed)


def _undo(state: Any, commit: Commit) -> Any:
    """A part of the scene before a commit that changed it."""
    key = _key_of(commit)
    if isinstance(state, Past):
        return state.back(key, commit.before)
    past = PastPods if isinstance(state, Pods) else Past
    return past(state, {key: commit.before})


def _key_of(commit: Commit) -> str:
    """What an object is found by in its part of the scene."""
    meta = (commit.before if commit.after is None else commit.after).metadata
    key: str = meta.name if commit.kind in _BY_NAME else meta.uid
    return key
