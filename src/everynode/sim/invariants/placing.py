"""S2: one pod per node; with surge two, of different revisions, on at most maxSurge nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import Referee, is_seen, node_of
from everynode.sim.invariants.views import Doubt, by_controller, owner_uid, pods_of, views
from everynode.sim.record import Commit, Scene


class OnePerNode(Invariant):
    """Our creates never put a pod beside another that still runs there."""

    id: ClassVar[str] = "S2"
    title: ClassVar[str] = "one pod per node, two at most while it surges"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at the node on which a pod was created."""
        if commit.type != "ADDED":
            return
        pod: Pod = commit.after
        uid = owner_uid(pod)
        if not uid:
            return  # a puller, or an orphan
        node = node_of(pod)
        beside = [
            each
            for each in pods_of(self.record.scene, node)
            if owner_uid(each) == uid and each.uid != pod.uid
        ]
        # Without its hash a pod of ours cannot be seen; whoever took it away wanted trouble.
        beside = [each for each in beside if not each.finished and each.hash]
        beside = [each for each in beside if not self._adopted(each, commit.actor)]
        orphan = self._orphan(commit, pod)
        if orphan:
            yield f"{pod.name} was created on {node} beside the orphan {orphan}, which matches"
        if not beside:
            return
        names = ", ".join(f"{each.name} ({each.hash})" for each in beside)
        if any(each.hash == pod.hash and not each.terminating for each in beside):
            yield f"{pod.name} of {pod.hash} was created on {node} beside {names}"
        elif not self._may_surge(commit, uid):
            yield f"{pod.name} was created on {node} beside {names}, beyond maxSurge"
        elif len(beside) > 1:
            yield f"{pod.name} is the third pod on {node}: {names}"

    def _may_surge(self, commit: Commit, uid: str) -> bool:
        """Whether in some view surge was on, and had room."""
        assert commit.asked is not None
        try:
            for scene, _ in views(self.record, commit):
                ds = scene.sets.get(uid)
                referee = Referee(scene, ds, commit.asked.now) if ds is not None else None
                if referee is not None and referee.surging and self._has_room(commit, referee):
                    return True
        except Doubt:
            return True
        return False

    def _has_room(self, commit: Commit, referee: Referee) -> bool:
        """Whether at most maxSurge nodes have two pods, with what we created since that view."""
        there = [pod for pods in referee.pods.values() for pod in pods if not pod.finished]
        there = [pod for pod in there if is_seen(pod)]
        for each in reversed(self.record.commits):
            if each.version <= referee.scene.version:
                break
            if each.kind == "pods" and each.type == "ADDED" and each.actor == commit.actor:
                there.append(each.after)
        found = Counter({pod.uid: node_of(pod) for pod in there}.values())
        there_are = referee.scene.nodes
        doubled = [node for node, count in found.items() if count > 1 and node in there_are]
        return sum(not referee.is_silent(node) for node in doubled) <= referee.limit

    def _orphan(self, commit: Commit, pod: Pod) -> str:
        """A pod that nobody owns and that every view shows, which should have been adopted."""
        known: dict[str, str] | None = None
        try:
            for scene, _ in views(self.record, commit):
                ds = scene.sets.get(owner_uid(pod))
                seen = _orphans(scene, ds, node_of(pod)) if ds is not None else {}
                known = seen if known is None else {u: n for u, n in known.items() if u in seen}
                if not known:
                    return ""
        except Doubt:
            return ""
        return ", ".join(sorted((known or {}).values()))

    def _adopted(self, pod: Pod, actor: str) -> bool:
        """Whether the pod came to us otherwise than by our own creation or adoption."""
        birth = self.record.births[pod.uid]
        if by_controller(birth) and owner_uid(birth.after) == owner_uid(pod):
            return False
        return not any(
            each.actor == actor
            and each.kind == "pods"
            and each.before is not None
            and each.after is not None
            and each.after.uid == pod.uid
            and owner_uid(each.before) != owner_uid(each.after)
            for each in reversed(self.record.commits)
        )


def _orphans(scene: Scene, ds: DaemonSet, node: str) -> dict[str, str]:
    """The names of pods on a node that are nobody's and match, by uid."""
    return {
        pod.uid: pod.name
        for pod in pods_of(scene, node)
        if pod.metadata.controller is None
        and pod.hash
        and not pod.terminating
        and not pod.finished
        and matches(ds.selector, pod.metadata.labels)
    }
