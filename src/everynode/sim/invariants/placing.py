"""S2: one pod per node; with surge two, of different revisions, on at most maxSurge nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api.objects import Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import Referee, node_of
from everynode.sim.invariants.views import Doubt, by_controller, owner_uid, views
from everynode.sim.record import Commit


class OnePerNode(Invariant):
    """Our creates never put a pod beside another that still runs there."""

    id: ClassVar[str] = "S2"
    title: ClassVar[str] = "one pod per node, two at most while it surges"

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at the node on which a pod was created."""
        if commit.kind != "pods" or commit.type != "ADDED" or not by_controller(commit):
            return
        pod: Pod = commit.after
        uid = owner_uid(pod)
        if not uid:
            return  # a puller, or an orphan
        node = node_of(pod)
        beside = [
            each
            for each in self.record.scene.pods.values()
            if owner_uid(each) == uid and node_of(each) == node and each.uid != pod.uid
        ]
        # Without its hash a pod of ours cannot be seen; whoever took it away wanted trouble.
        beside = [each for each in beside if not each.finished and each.hash]
        beside = [each for each in beside if not self._adopted(each)]
        if not beside:
            return
        names = ", ".join(f"{each.name} ({each.hash})" for each in beside)
        if any(each.hash == pod.hash and not each.terminating for each in beside):
            yield f"{pod.name} of {pod.hash} was created on {node} beside {names}"
        elif not self._may_surge(commit, uid):
            yield f"{pod.name} was created on {node} beside {names}, without surge"
        elif len(beside) > 1:
            yield f"{pod.name} is the third pod on {node}: {names}"

    def _may_surge(self, commit: Commit, uid: str) -> bool:
        """Whether in some view surge was on, and had room."""
        assert commit.asked is not None
        try:
            for scene, _ in views(self.record, commit):
                ds = scene.sets.get(uid)
                if ds is not None and Referee(scene, ds, commit.asked.now).surging:
                    return True
        except Doubt:
            return True
        return False

    def _adopted(self, pod: Pod) -> bool:
        """Whether the pod came to us otherwise than by our own creation."""
        for each in self.record.commits:
            if each.kind == "pods" and each.type == "ADDED" and each.after.uid == pod.uid:
                return not by_controller(each) or owner_uid(each.after) != owner_uid(pod)
        return True
