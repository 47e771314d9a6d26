"""S10: no pod is deleted past a hook that holds it, and none is taken back from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api import keys
from everynode.api.daemonset import Hook
from everynode.api.objects import Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.views import Doubt, owner_uid, views
from everynode.sim.record import Commit


class Hooks(Invariant):
    """A pod that carries what its hook names is marked, not deleted."""

    id: ClassVar[str] = "S10"
    title: ClassVar[str] = "hooks hold"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a pod that was deleted, or marked for it."""
        if commit.before is None:
            return
        before: Pod = commit.before
        if commit.after is not None:
            yield from _judge_state(before, commit.after)
        going = commit.after is None or commit.after.terminating
        if not going or before.terminating or before.finished:
            return
        try:
            held = all(
                self._is_held(scene.sets[owner_uid(before)].pre_delete, scene.pods[before.uid])
                for scene, _ in views(self.record, commit)
                if owner_uid(before) in scene.sets and before.uid in scene.pods
            )
        except Doubt:
            return
        if held and owner_uid(before) in self.record.scene.sets:
            yield f"{before.name} was deleted while its hook held it"

    def _is_held(self, hook: Hook | None, pod: Pod) -> bool:
        if hook is None:
            return False
        labels = pod.metadata.labels
        if any(labels.get(key) == value for key, value in hook.labels.items()):
            return True
        return any(each in hook.finalizers for each in pod.metadata.finalizers)


def _judge_state(before: Pod, after: Pod) -> Iterable[str]:
    """PreparingDelete is the only state that we write, and nothing leads back from it."""
    old = before.metadata.labels.get(keys.LIFECYCLE_STATE, "")
    new = after.metadata.labels.get(keys.LIFECYCLE_STATE, "")
    if old != new and new != keys.PREPARING_DELETE:
        yield f"{after.name} was {old or 'unmarked'} and was made {new or 'unmarked'}"
