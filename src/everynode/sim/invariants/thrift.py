"""L3: a pod costs no more writes than its way from one revision to the next has steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, RollingType
from everynode.api.objects import Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import is_blocked, is_preparing
from everynode.sim.invariants.views import owner_uid
from everynode.sim.record import Asked, Commit, Record

_Stretch = tuple[str, int]  # the pod's revision, and what people wanted when it was changed


class Thrift(Invariant):
    """Counts the requests that changed a pod since its revision, or the wish of people, changed."""

    id: ClassVar[str] = "L3"
    title: ClassVar[str] = "no more writes than steps, and none while there is nothing to do"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._spent: dict[str, tuple[_Stretch, int, Asked | None]] = {}  # by the pod's uid

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a pod that we wrote to."""
        before, pod = commit.before, commit.after if commit.after is not None else commit.before
        ds = self.record.scene.sets.get(owner_uid(pod))
        if ds is None or keys.PULLER in pod.metadata.labels:
            return
        if before is not None and _is_aside(before, pod):
            return
        in_place = ds.strategy.rolling is RollingType.IN_PLACE
        stretch = (pod.hash, ds.metadata.generation if in_place else 0)
        known, count, asked = self._spent.get(pod.uid, (stretch, 0, None))
        if known != stretch:
            count = 0
        elif asked is commit.asked:
            return  # one request may be two steps of history
        self._spent[pod.uid] = (stretch, count + 1, commit.asked)
        if count == most(ds, pod):
            yield f"{pod.name} of {pod.hash} was written to {count + 1} times"


def _is_aside(before: Pod, after: Pod) -> bool:
    """Whether a write is no step of its own: others took owner or hash, or its image is fetched."""
    if owner_uid(before) != owner_uid(after) or not before.hash:
        return True
    return before.metadata.annotations.pulled != after.metadata.annotations.pulled


def most(ds: DaemonSet, pod: Pod) -> int:
    """How many writes the life of a pod at one revision takes.

    Coming and going, or the change of its images and their proof; opening its gate; waiting for its
    hook. In place it may also be resized first, and given up in the end.
    """
    steps = 2 + bool(pod.spec.readiness_gates) + _marks(ds, pod)
    return steps + 2 * (ds.strategy.rolling is RollingType.IN_PLACE)


def _marks(ds: DaemonSet, pod: Pod) -> int:
    """How many writes tell a pod that it is to go; the hook for which they were may be gone."""
    hook = ds.pre_delete
    if hook is None:
        return 2 if is_preparing(pod) else int(is_blocked(pod))
    return 1 + hook.mark_not_ready
