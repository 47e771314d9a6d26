"""S6: controllers write only to their own pods, and adopt only matching orphans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api.objects import Pod
from everynode.api.selector import matches
from everynode.sim.checks.check import Check
from everynode.sim.checks.possible_views import owner_uid
from everynode.sim.history.record import Commit


class Ownership(Check):
    """Controllers write neither to pods of other owners nor to nodes."""

    id: ClassVar[str] = "S6"
    title: ClassVar[str] = "only our own pods are written to"
    kinds: ClassVar[tuple[str, ...]] = ("nodes", "pods")
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check the owner of the object that was written."""
        if commit.kind == "nodes":
            yield f"node {(commit.after or commit.before).name} was written to"
        if commit.kind != "pods" or commit.before is None:
            return
        before: Pod = commit.before
        after: Pod | None = commit.after
        was, becomes = owner_uid(before), owner_uid(after) if after is not None else ""
        if was == becomes or after is None:
            if not was and "everynode.io/puller" not in before.metadata.labels:
                yield f"{before.name} has no owner and was written to"
        elif not was:
            yield from self._check_adoption(before, becomes)
        elif becomes:
            yield f"{before.name} was taken from another owner"
        elif self._matches(after, was):
            yield f"{before.name} was let go although it matches"

    def _check_adoption(self, pod: Pod, uid: str) -> Iterable[str]:
        if pod.terminating:
            yield f"{pod.name} was adopted while it was being deleted"
        if not self._matches(pod, uid):
            yield f"{pod.name} was adopted although it does not match"

    def _matches(self, pod: Pod, uid: str) -> bool:
        ds = self.record.cluster.sets.get(uid)
        return ds is not None and matches(ds.selector, pod.metadata.labels)
