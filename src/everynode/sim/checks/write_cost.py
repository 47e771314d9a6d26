"""L3: an update of a pod takes no more writes than it has steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, RollingUpdateType
from everynode.api.objects import Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import is_marked_not_ready, is_preparing
from everynode.sim.checks.possible_views import owner_uid
from everynode.sim.history.record import Commit, RecordedRequest, WorldRecord

_Stretch = tuple[str, int]  # the pod's revision, and in place also the DaemonSet's generation


class WriteCost(Check):
    """Counts the writes to a pod since its revision, or in place the DaemonSet's spec, changed."""

    id: ClassVar[str] = "L3"
    title: ClassVar[str] = "no more writes than steps, and none while there is nothing to do"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        # By the pod's uid.
        self._spent: dict[str, tuple[_Stretch, int, RecordedRequest | None]] = {}

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that a controller wrote to."""
        before, pod = commit.before, commit.after if commit.after is not None else commit.before
        ds = self.record.cluster.sets.get(owner_uid(pod))
        if ds is None or keys.PULL_POD_OWNER in pod.metadata.labels:
            return
        if before is not None and _is_aside(before, pod):
            return
        in_place = ds.strategy.rolling is RollingUpdateType.IN_PLACE
        stretch = (pod.hash, ds.metadata.generation if in_place else 0)
        known, count, cause = self._spent.get(pod.uid, (stretch, 0, None))
        if known != stretch:
            count = 0
        elif cause is commit.cause:
            return  # one request may cause two commits
        self._spent[pod.uid] = (stretch, count + 1, commit.cause)
        if count == max_writes(ds, pod):
            yield f"{pod.name} of {pod.hash} was written to {count + 1} times"


def _is_aside(before: Pod, after: Pod) -> bool:
    """Whether a write is not counted: adoption, release, hash restored, or image pull recorded."""
    if owner_uid(before) != owner_uid(after) or not before.hash:
        return True
    return before.metadata.annotations.pulled != after.metadata.annotations.pulled


def max_writes(ds: DaemonSet, pod: Pod) -> int:
    """How many writes a pod may get at one revision.

    Create and delete (or patch the images and confirm them), open the readiness gate, and mark the
    pod for its hook. In place, two more: a resize first, and a delete if the update is given up.
    """
    steps = 2 + bool(pod.spec.readiness_gates) + _marks(ds, pod)
    return steps + 2 * (ds.strategy.rolling is RollingUpdateType.IN_PLACE)


def _marks(ds: DaemonSet, pod: Pod) -> int:
    """How many writes mark a pod for its preDelete hook, which may have been changed since."""
    hook = ds.pre_delete
    if hook is None:
        return 2 if is_preparing(pod) else int(is_marked_not_ready(pod))
    return 1 + (hook.mark_not_ready or is_marked_not_ready(pod))
