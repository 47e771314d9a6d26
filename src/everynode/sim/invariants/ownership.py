"""S6: we write only to what is ours; we adopt what is nobody's and matches, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.views import owner_uid
from everynode.sim.record import Commit


class Ownership(Invariant):
    """Pods of others are left alone; so are nodes."""

    id: ClassVar[str] = "S6"
    title: ClassVar[str] = "only our own pods are written to"
    kinds: ClassVar[tuple[str, ...]] = ("nodes", "pods")
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at whose object was written."""
        if commit.kind == "nodes":
            yield f"node {(commit.after or commit.before).name} was written to"
        if commit.kind != "pods" or commit.before is None:
            return
        before: Pod = commit.before
        after: Pod | None = commit.after
        was, becomes = owner_uid(before), owner_uid(after) if after is not None else ""
        if was == becomes or after is None:
            if not was and "everynode.io/puller" not in before.metadata.labels:
                yield f"{before.name} is nobody's and was written to"
        elif not was:
            yield from self._judge_adoption(before, becomes)
        elif becomes:
            yield f"{before.name} was taken from another owner"
        elif self._matches(after, was):
            yield f"{before.name} was let go although it matches"

    def _judge_adoption(self, pod: Pod, uid: str) -> Iterable[str]:
        if pod.terminating:
            yield f"{pod.name} was adopted while it was being deleted"
        if not self._matches(pod, uid):
            yield f"{pod.name} was adopted although it does not match"

    def _matches(self, pod: Pod, uid: str) -> bool:
        ds = self.record.scene.sets.get(uid)
        return ds is not None and matches(ds.selector, pod.metadata.labels)
