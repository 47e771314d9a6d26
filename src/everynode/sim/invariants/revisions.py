"""S8: revisions come before their pods, count up, never change, and stay while they are used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.objects import ControllerRevision
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.views import Doubt, by_controller, views
from everynode.sim.record import Commit, Scene


class Revisions(Invariant):
    """What we write about revisions."""

    id: ClassVar[str] = "S8"
    title: ClassVar[str] = "revisions are kept while they are used and never change"

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a revision that was written."""
        if commit.kind != "controllerrevisions.apps" or not by_controller(commit):
            return
        before, after = commit.before, commit.after
        if after is None:
            yield from self._judge_deletion(commit, before)
        elif before is None:
            yield from self._judge_creation(after)
        elif bytes(before.data) != bytes(after.data):
            yield f"the content of {after.metadata.name} was changed"
        elif after.revision < before.revision:
            yield f"{after.metadata.name} was given a smaller number"

    def _judge_creation(self, made: ControllerRevision) -> Iterable[str]:
        owner = made.metadata.controller
        if owner is None:
            yield f"{made.metadata.name} has no owner"
            return
        others = [
            each.revision
            for each in self.record.scene.revisions.values()
            if each.metadata.name != made.metadata.name
            and each.metadata.controller is not None
            and each.metadata.controller.uid == owner.uid
        ]
        if made.revision in others and not self._disturbed():
            yield f"{made.metadata.name} has number {made.revision}, which is taken"

    def _disturbed(self) -> bool:
        """Whether somebody else wrote revisions: then numbers can meet."""
        return any(
            each.kind == "controllerrevisions.apps" and not by_controller(each)
            for each in self.record.commits
        )

    def _judge_deletion(self, commit: Commit, gone: ControllerRevision) -> Iterable[str]:
        hash = gone.metadata.labels.get(keys.REVISION_HASH, "")
        owner = gone.metadata.controller
        if owner is None:
            yield f"{gone.metadata.name} is nobody's and was deleted"
            return
        try:
            used = all(_uses(scene, owner.uid, hash) for scene, _ in views(self.record, commit))
        except Doubt:
            return
        if used:
            yield f"{gone.metadata.name} was deleted while a pod carries it"


def _uses(scene: Scene, uid: str, hash: str) -> bool:
    for pod in scene.pods.values():
        owner = pod.metadata.controller
        if owner is not None and owner.uid == uid and pod.hash == hash:
            return True
    return False
