"""S10: no pod is deleted while its preDelete hook holds it, and PreparingDelete is final."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import LifecycleHook
from everynode.api.objects import Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.possible_views import TooManyViews, owner_uid, possible_views
from everynode.sim.history.record import Commit


class Hooks(Check):
    """A pod that carries its hook's label is marked PreparingDelete, not deleted."""

    id: ClassVar[str] = "S10"
    title: ClassVar[str] = "hooks hold"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that was deleted or marked PreparingDelete."""
        if commit.before is None:
            return
        before: Pod = commit.before
        if commit.after is not None:
            yield from _check_state(before, commit.after)
        going = commit.after is None or commit.after.terminating
        if not going or before.terminating or before.finished:
            return
        try:
            held = all(
                is_held_by_hook(
                    cluster.sets[owner_uid(before)].pre_delete, cluster.pods[before.uid]
                )
                for cluster, _ in possible_views(self.record, commit)
                if owner_uid(before) in cluster.sets and before.uid in cluster.pods
            )
        except TooManyViews:
            return
        if held and owner_uid(before) in self.record.cluster.sets:
            yield f"{before.name} was deleted while its hook held it"


def is_held_by_hook(hook: LifecycleHook | None, pod: Pod) -> bool:
    """Whether the pod carries a label or a finalizer of the preDelete hook."""
    if hook is None:
        return False
    labels = pod.metadata.labels
    if any(labels.get(key) == value for key, value in hook.labels.items()):
        return True
    return any(each in hook.finalizers for each in pod.metadata.finalizers)


def _check_state(before: Pod, after: Pod) -> Iterable[str]:
    """PreparingDelete is the only state that we write, and it is never removed."""
    old = before.metadata.labels.get(keys.LIFECYCLE_STATE, "")
    new = after.metadata.labels.get(keys.LIFECYCLE_STATE, "")
    if old != new and new != keys.PREPARING_DELETE:
        yield f"{after.name} was {old or 'unmarked'} and was made {new or 'unmarked'}"
