"""S1c: a version that works nowhere takes no more Ready pods than maxUnavailable, come what may.

S1a looks at the nodes that are down at one moment, and lets silent ones be. This one remembers:
from whom a version has taken a Ready pod, and whether it has been available anywhere since then.
A node that falls silent under the new version is no excuse for taking the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.clock import EPOCH
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.referee import Referee, gate_closed, is_true, meaning, node_of, wants
from everynode.sim.invariants.views import Doubt, owner_uid, taken_pod, taken_since, views
from everynode.sim.record import Asked, Commit, Record, Scene


class _Course:
    """What a version has done since a DaemonSet wants it."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.works = False  # it has been available somewhere
        self.hurt: dict[str, int] = {}  # nodes that lost a Ready pod for it, and when


class Harm(Invariant):
    """Counts the nodes that a version has harmed before it has helped anybody."""

    id: ClassVar[str] = "S1c"
    title: ClassVar[str] = "a version that works nowhere takes maxUnavailable Ready pods at most"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True
    noted: ClassVar[tuple[str, ...]] = SETS

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._courses: dict[str, _Course] = {}  # by the DaemonSet's uid

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at Ready pods that are taken for what is wanted."""
        pod = taken_pod(commit)
        if pod is not None and is_true(pod, keys.READY):
            yield from self._judge(commit, pod)

    def note(self, commit: Commit) -> None:
        """Look at what is wanted."""
        before, after = commit.before, commit.after
        if after is None:
            self._courses.pop(before.uid, None)
        elif before is None or (
            before.template != after.template
            and meaning(before.template) != meaning(after.template)
        ):
            self._courses[after.uid] = _Course(commit.version)

    def _judge(self, commit: Commit, pod: Pod) -> Iterable[str]:
        course = self._courses.get(owner_uid(pod))
        if course is None or course.works:
            return
        assert commit.asked is not None
        scene = self.record.scene
        referee = Referee(scene, scene.sets[owner_uid(pod)], commit.asked.now)
        if referee.at_target(pod) or self._is_excused(commit, pod, referee.ds):
            return
        course.hurt[node_of(pod)] = commit.version
        if len(course.hurt) <= _allowed(referee):
            return
        if _works(referee):
            course.works = True
            return
        most = self._look_back(course, referee.ds.uid, commit.asked)
        if len(course.hurt) > most and not self._seems_to_work(commit, pod, referee.ds):
            names = " ".join(sorted(course.hurt))
            yield f"{pod.name}: a version that works nowhere has taken {names}, {most} may go"

    def _is_excused(self, commit: Commit, pod: Pod, wanted: DaemonSet) -> bool:
        """Whether some view gives another reason to take the pod than what is wanted now."""
        assert commit.asked is not None
        try:
            for scene, _ in views(self.record, commit):
                ds = scene.sets.get(wanted.uid)
                if ds is None or pod.uid not in scene.pods:
                    continue
                referee = Referee(scene, ds, commit.asked.now)
                other = ds.template != wanted.template and not referee.at_target(pod)
                if other or _is_in_the_way(referee, pod):
                    return True
        except Doubt:
            return True
        return False

    def _seems_to_work(self, commit: Commit, pod: Pod, wanted: DaemonSet) -> bool:
        """Whether the version is available by now in some view, whatever has become of it unseen.

        There are not too many views to tell, or the pod would have been excused.
        """
        assert commit.asked is not None
        for scene, version in views(self.record, commit):
            ds = scene.sets.get(wanted.uid)
            if ds is None or ds.template != wanted.template or pod.uid not in scene.pods:
                continue
            taken = taken_since(self.record, commit, version)
            if _works(Referee(scene, ds, commit.asked.now), taken):
                return True
        return False

    def _look_back(self, course: _Course, uid: str, asked: Asked) -> int:
        """Forget who need not be counted, all where it works; the most that were allowed then."""
        most = 0
        ahead = max(0.0, asked.now - EPOCH - asked.time)  # a fast clock finds pods available early
        for scene, until in self._scenes(min(course.since, *asked.floors.values())):
            ds = scene.sets.get(uid)
            if ds is None:
                continue
            referee = Referee(scene, ds, EPOCH + until + ahead)
            most = max(most, _allowed(referee))
            if scene.version < course.since:
                continue
            course.works = course.works or _works(referee)
            for node, version in list(course.hurt.items()):
                if course.works or (version <= scene.version and not _counts(referee, node)):
                    del course.hurt[node]
        return most

    def _scenes(self, since: int) -> Iterator[tuple[Scene, float]]:
        """The states since a version, newest first, with the time up to which each lasted."""
        until: float | None = None
        for scene in reversed(self.record.scenes):
            if until is not None:
                yield scene, until
            if scene.version < since:
                return
            until = scene.time


def _allowed(referee: Referee) -> int:
    return 0 if referee.surging else referee.limit


def _works(referee: Referee, taken: Collection[str] = ()) -> bool:
    """Whether the version is available somewhere."""
    own = (pod for pods in referee.pods.values() for pod in pods)
    return any(referee.at_target(pod) and referee.is_up(pod, taken) for pod in own)


def _is_in_the_way(referee: Referee, pod: Pod) -> bool:
    """Whether a pod would have to go without any update: misplaced, or one of several."""
    node = referee.scene.nodes.get(node_of(pod))
    if node is None or not wants(referee.life(node.name)).stays(node):
        return True
    return any(each.uid != pod.uid for each in referee.staying(node.name))


def _counts(referee: Referee, node: str) -> bool:
    """Whether a node still suffers from the version that took its pod."""
    if node not in referee.wanted or node not in referee.scope or not referee.is_down(node, ()):
        return False
    met = any(referee.at_target(pod) or gate_closed(pod) for pod in referee.pods_on(node))
    return met or not referee.is_silent(node)
