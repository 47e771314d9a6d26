"""S8: revisions are stored before their pods, count up, never change, and stay while in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import ClassVar, Final

from everynode.api import keys
from everynode.api.objects import ControllerRevision, Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import Oracle, canonical_template, is_watched, revision_template
from everynode.sim.checks.possible_views import TooManyViews, by_controller, possible_views
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit

_MAX_LIST_AGE: Final = 15.0  # seconds that may pass between the list of revisions and the write


class Revisions(Check):
    """Checks the ControllerRevisions that controllers write."""

    id: ClassVar[str] = "S8"
    title: ClassVar[str] = "revisions are kept while they are used and never change"
    kinds: ClassVar[tuple[str, ...]] = ("controllerrevisions.apps",)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a revision that was written."""
        before, after = commit.before, commit.after
        if after is None:
            yield from self._check_deletion(commit, before)
        elif before is None:
            yield from self._check_creation(after)
            yield from self._check_need(commit, after)
            yield from self._check_source(commit, after)
        elif bytes(before.data) != bytes(after.data):
            yield f"the content of {after.metadata.name} was changed"
        elif after.revision < before.revision:
            yield f"{after.metadata.name} was given a smaller number"
        elif _note(before, keys.TARGET_GENERATION) != _note(after, keys.TARGET_GENERATION):
            yield from self._check_number(after)
            # A note that an earlier DaemonSet of this name left behind says nothing.
            noted_for = _note(after, keys.COMPLETED).partition("/")[2]
            owner = after.metadata.controller
            if after.revision > before.revision and owner and noted_for == owner.uid:
                yield f"{after.metadata.name} became the target again and is noted as complete"
            if _note(before, keys.FROM_REVISION) != _note(after, keys.FROM_REVISION):
                yield from self._check_source(commit, after)
        elif _note(after, keys.COMPLETED) not in ("", _note(before, keys.COMPLETED)):
            yield from self._check_completion(commit, after)

    def _check_completion(self, commit: Commit, noted: ControllerRevision) -> Iterable[str]:
        """A target is noted as complete only when it was available on every node (R3)."""
        assert commit.cause is not None
        owner, now = noted.metadata.controller, commit.cause.evaluated_at
        hash = noted.metadata.labels.get(keys.REVISION_HASH, "")
        try:
            views = [cluster for cluster, _ in possible_views(self.record, commit)]
        except TooManyViews:
            return
        for cluster in chain(views, self._before(commit.time)):
            ds = cluster.sets.get(owner.uid) if owner is not None else None
            if ds is not None and _is_complete(Oracle(cluster, ds, now), hash):
                return
        yield f"{noted.metadata.name} is noted as complete and was not"

    def _check_creation(self, revision: ControllerRevision) -> Iterable[str]:
        owner = revision.metadata.controller
        if owner is None:
            yield f"{revision.metadata.name} has no owner"
            return
        others = [
            each.revision
            for each in self.record.cluster.revisions.values()
            if each.metadata.name != revision.metadata.name
            and each.metadata.controller is not None
            and each.metadata.controller.uid == owner.uid
        ]
        if revision.revision in others and not self._disturbed():
            yield f"{revision.metadata.name} has number {revision.revision}, which is taken"

    def _check_need(self, commit: Commit, revision: ControllerRevision) -> Iterable[str]:
        """No second revision is created for a template that is already stored (R1)."""
        owner = revision.metadata.controller
        if owner is None:
            return
        wanted = canonical_template(revision_template(bytes(revision.data)))
        try:
            if all(
                _keeps(cluster, owner.uid, wanted)
                for cluster, _ in possible_views(self.record, commit)
            ):
                yield f"{revision.metadata.name} was made although its template is stored already"
        except TooManyViews:
            return

    def _check_number(self, revision: ControllerRevision) -> Iterable[str]:
        """The target has the highest revision number: users and kubectl identify it by that."""
        owner = revision.metadata.controller
        if owner is None or self._disturbed():
            return
        if revision.revision < max(
            each.revision for each in _revisions_of(self.record.cluster, owner.uid)
        ):
            yield f"{revision.metadata.name} became the target and others have higher numbers"

    def _check_source(self, commit: Commit, revision: ControllerRevision) -> Iterable[str]:
        """A new target names the revision that most pods carried (R3)."""
        owner = revision.metadata.controller
        named = _note(revision, keys.FROM_REVISION)
        if owner is None:
            return
        try:
            if any(
                _may_name(s, revision, named, owner.uid)
                for s, _ in possible_views(self.record, commit)
            ):
                return
        except TooManyViews:
            return
        if any(
            _may_name(cluster, revision, named, owner.uid) for cluster in self._before(commit.time)
        ):
            return
        name = revision.metadata.name
        yield f"{name} became the target and says it came from {named or 'nothing'}"

    def _before(self, time: float) -> Iterator[ClusterState]:
        """Recent states: the controller lists revisions shortly before it writes one."""
        states = reversed(self.record.states)
        return takewhile(lambda cluster: cluster.time > time - _MAX_LIST_AGE, states)

    def _disturbed(self) -> bool:
        """Whether another client wrote revisions, so that revision numbers can collide."""
        return any(
            each.kind == "controllerrevisions.apps" and not by_controller(each)
            for each in self.record.commits
        )

    def _check_deletion(self, commit: Commit, gone: ControllerRevision) -> Iterable[str]:
        hash = gone.metadata.labels.get(keys.REVISION_HASH, "")
        owner = gone.metadata.controller
        if owner is None:
            yield f"{gone.metadata.name} has no owner and was deleted"
            return
        try:
            used = all(
                _uses(cluster, owner.uid, hash)
                for cluster, _ in possible_views(self.record, commit)
            )
        except TooManyViews:
            return
        if used:
            yield f"{gone.metadata.name} was deleted while a pod carries it or the target names it"


def _is_complete(oracle: Oracle, hash: str) -> bool:
    """Whether every node that should have a pod has an available one of this target."""
    return (
        hash in oracle.targets
        and bool(oracle.desired_nodes)
        and all(
            any(oracle.at_target(pod) and oracle.is_available(pod) for pod in oracle.pods_on(node))
            for node in oracle.desired_nodes
        )
    )


def _note(revision: ControllerRevision, key: str) -> str:
    return revision.metadata.annotations.get(key, "")


def _revisions_of(cluster: ClusterState, uid: str) -> list[ControllerRevision]:
    found = []
    for each in cluster.revisions.values():
        owner = each.metadata.controller
        if owner is not None and owner.uid == uid:
            found.append(each)
    return found


def _keeps(cluster: ClusterState, uid: str, wanted: bytes) -> bool:
    found = (revision_template(bytes(each.data)) for each in _revisions_of(cluster, uid))
    return any(canonical_template(template) == wanted for template in found)


def _may_name(cluster: ClusterState, revision: ControllerRevision, named: str, uid: str) -> bool:
    """Whether most pods carried that revision in this state, counting the target's pods or not."""
    mine = revision.metadata.labels.get(keys.REVISION_HASH, "")
    known = [
        each.metadata.labels.get(keys.REVISION_HASH, "") for each in _revisions_of(cluster, uid)
    ]
    pods = [pod for pod in cluster.pods.values() if _is_of(pod, uid)]
    for hashes in ([*known, mine], [each for each in known if each != mine]):
        carried = Counter(pod.hash for pod in pods if pod.hash in hashes)
        if named in carried and carried[named] == max(carried.values()):
            return True
        if not carried and named == (mine if pods else ""):
            return True
        if not named and not any(map(is_watched, pods)):
            return True  # a user removed the label by which the pods are watched
    return False


def _is_of(pod: Pod, uid: str) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.uid == uid


def _uses(cluster: ClusterState, uid: str, hash: str) -> bool:
    ds = cluster.sets.get(uid)
    if ds is not None:
        oracle = Oracle(cluster, ds, 0.0)
        if len(oracle.targets) == 1 and oracle.needed_source == hash:
            return True
    return any(_is_of(pod, uid) and pod.hash == hash for pod in cluster.pods.values())
