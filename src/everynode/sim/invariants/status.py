"""S11: the status never lies about what was seen, and never goes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.api.daemonset import DaemonSet
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.referee import Referee
from everynode.sim.invariants.tally import MANY
from everynode.sim.invariants.views import Doubt, views
from everynode.sim.record import Commit


class Status(Invariant):
    """What we write into a status."""

    id: ClassVar[str] = "S11"
    title: ClassVar[str] = "the status is a recount and never goes back"
    kinds: ClassVar[tuple[str, ...]] = SETS
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a status that was written."""
        if commit.before is None or commit.after is None:
            return
        before: DaemonSet = commit.before
        after: DaemonSet = commit.after
        if before.metadata.generation != after.metadata.generation:
            yield "the spec was changed by us"
        old, new = before.status, after.status
        if new.observed_generation < old.observed_generation:
            yield f"observedGeneration fell to {new.observed_generation}"
        if new.observed_generation > after.metadata.generation:
            yield f"generation {new.observed_generation} was observed before it was written"
        if new.available > new.ready or new.ready > new.current or new.current > new.desired:
            yield f"{new.available} available of {new.ready} ready of {new.current} current"
        if new.unavailable != new.desired - new.available:
            yield f"{new.unavailable} unavailable, {new.available} available of {new.desired}"
        yield from self._judge_desired(commit, after)
        lost = {each.type for each in old.conditions} - {each.type for each in new.conditions}
        if lost:
            yield f"the conditions {', '.join(sorted(lost))} were dropped"
        known = {each.type: each for each in old.conditions}
        for each in new.conditions:
            was = known.get(each.type)
            if was is None or was.status != each.status:
                continue
            if was.last_transition_time != each.last_transition_time:
                yield f"condition {each.type} stayed {each.status} and its time changed"

    def _judge_desired(self, commit: Commit, after: DaemonSet) -> Iterable[str]:
        """Percentages and progress go by this number: it is what some view shows.

        A large fleet takes too long to be counted with every write.
        """
        if len(self.record.scene.nodes) >= MANY:
            return
        desired = after.status.desired
        try:
            for scene, _ in views(self.record, commit):
                ds = scene.sets.get(after.uid)
                if ds is not None and len(Referee(scene, ds, 0.0).wanted) == desired:
                    return
        except Doubt:
            return
        yield f"{desired} nodes are said to be wanted, and no view shows so many"
