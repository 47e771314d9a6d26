"""S8: revisions come before their pods, count up, never change, and stay while they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import ClassVar, Final

from everynode.api import keys
from everynode.api.objects import ControllerRevision, Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import Referee, is_seen, meaning, template_in
from everynode.sim.invariants.views import Doubt, by_controller, views
from everynode.sim.record import Commit, Scene

_LISTING: Final = 15.0  # seconds that may pass between a choice and its write


class Revisions(Invariant):
    """What we write about revisions."""

    id: ClassVar[str] = "S8"
    title: ClassVar[str] = "revisions are kept while they are used and never change"
    kinds: ClassVar[tuple[str, ...]] = ("controllerrevisions.apps",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a revision that was written."""
        before, after = commit.before, commit.after
        if after is None:
            yield from self._judge_deletion(commit, before)
        elif before is None:
            yield from self._judge_creation(after)
            yield from self._judge_need(commit, after)
            yield from self._judge_source(commit, after)
        elif bytes(before.data) != bytes(after.data):
            yield f"the content of {after.metadata.name} was changed"
        elif after.revision < before.revision:
            yield f"{after.metadata.name} was given a smaller number"
        elif _note(before, keys.TARGET_GENERATION) != _note(after, keys.TARGET_GENERATION):
            yield from self._judge_number(after)
            if _note(before, keys.FROM_REVISION) != _note(after, keys.FROM_REVISION):
                yield from self._judge_source(commit, after)

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

    def _judge_need(self, commit: Commit, made: ControllerRevision) -> Iterable[str]:
        """A template that is stored under another name already needs no other (R1)."""
        owner = made.metadata.controller
        if owner is None:
            return
        wanted = meaning(template_in(bytes(made.data)))
        try:
            if all(_keeps(scene, owner.uid, wanted) for scene, _ in views(self.record, commit)):
                yield f"{made.metadata.name} was made although its template is stored already"
        except Doubt:
            return

    def _judge_number(self, made: ControllerRevision) -> Iterable[str]:
        """The target has the highest number: it is how people and kubectl find it."""
        owner = made.metadata.controller
        if owner is None or self._disturbed():
            return
        if made.revision < max(each.revision for each in _owned(self.record.scene, owner.uid)):
            yield f"{made.metadata.name} became the target and others have higher numbers"

    def _judge_source(self, commit: Commit, made: ControllerRevision) -> Iterable[str]:
        """A new target names the revision that most pods carried (R3)."""
        owner = made.metadata.controller
        named = _note(made, keys.FROM_REVISION)
        if owner is None:
            return
        try:
            if any(_may_name(s, made, named, owner.uid) for s, _ in views(self.record, commit)):
                return
        except Doubt:
            return
        if any(_may_name(scene, made, named, owner.uid) for scene in self._before(commit.time)):
            return
        yield f"{made.metadata.name} became the target and says it came from {named or 'nothing'}"

    def _before(self, time: float) -> Iterator[Scene]:
        """What was there when the revisions were listed that no other be overlooked."""
        scenes = reversed(self.record.scenes)
        return takewhile(lambda scene: scene.time > time - _LISTING, scenes)

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
            yield f"{gone.metadata.name} was deleted while a pod carries it or the target names it"


def _note(revision: ControllerRevision, key: str) -> str:
    return revision.metadata.annotations.get(key, "")


def _owned(scene: Scene, uid: str) -> list[ControllerRevision]:
    found = []
    for each in scene.revisions.values():
        owner = each.metadata.controller
        if owner is not None and owner.uid == uid:
            found.append(each)
    return found


def _keeps(scene: Scene, uid: str, wanted: bytes) -> bool:
    found = (template_in(bytes(each.data)) for each in _owned(scene, uid))
    return any(meaning(template) == wanted for template in found)


def _may_name(scene: Scene, made: ControllerRevision, named: str, uid: str) -> bool:
    """Whether most pods carried that revision in this state, the target's own ones aside or not."""
    mine = made.metadata.labels.get(keys.REVISION_HASH, "")
    known = [each.metadata.labels.get(keys.REVISION_HASH, "") for each in _owned(scene, uid)]
    pods = [pod for pod in scene.pods.values() if _is_of(pod, uid)]
    for hashes in ([*known, mine], [each for each in known if each != mine]):
        carried = Counter(pod.hash for pod in pods if pod.hash in hashes)
        if named in carried and carried[named] == max(carried.values()):
            return True
        if not carried and named == (mine if pods else ""):
            return True
        if not named and not any(map(is_seen, pods)):
            return True  # somebody took away the label by which they are watched
    return False


def _is_of(pod: Pod, uid: str) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.uid == uid


def _uses(scene: Scene, uid: str, hash: str) -> bool:
    ds = scene.sets.get(uid)
    if ds is not None:
        referee = Referee(scene, ds, 0.0)
        if len(referee.targets) == 1 and referee.came_from == hash:
            return True
    return any(_is_of(pod, uid) and pod.hash == hash for pod in scene.pods.values())
