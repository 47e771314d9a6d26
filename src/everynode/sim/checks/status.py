"""S11: the status shows counts that its writer may have seen, and never goes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar, Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.sim.checks.check import DAEMONSET_KINDS, Check
from everynode.sim.checks.oracle import Oracle
from everynode.sim.checks.status_conditions import (
    condition_faults,
    is_true_condition,
    not_as_declared,
)
from everynode.sim.checks.status_recount import (
    COUNTED,
    CurrentCounts,
    KnowledgeTooOld,
    Recount,
    RevisionMark,
    WriterKnowledge,
    counts_of,
)
from everynode.sim.history.record import Commit, WorldRecord

# Seconds after which every controller has noticed that its clock was set.
_CLOCK_NOTICED_AFTER: Final = 11.0


class StatusCounts(Check):
    """Checks the status that controllers write."""

    id: ClassVar[str] = "S11"
    title: ClassVar[str] = "the status is a recount and never goes back"
    kinds: ClassVar[tuple[str, ...]] = DAEMONSET_KINDS
    controller_only: ClassVar[bool] = True

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._shares: dict[str, CurrentCounts] = {}

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a status that a controller wrote."""
        if commit.before is None or commit.after is None:
            return
        before: DaemonSet = commit.before
        after: DaemonSet = commit.after
        if before.metadata.generation != after.metadata.generation:
            yield "the spec was changed by us"
        yield from _check_generation(before, after.status)
        yield from _check_sums(after.status)
        yield from self._check_counts(commit)
        yield from _check_conditions(before.status, after.status)
        yield from self._check_meaning(commit)

    def _check_counts(self, commit: Commit) -> Iterable[str]:
        """Every count is possible, given what the writer knew and what its clock showed."""
        cause, ds, status = commit.cause, commit.before, commit.after.status
        if cause is None or commit.time < cause.clock_set_at + _CLOCK_NOTICED_AFTER:
            return
        past, shares = WriterKnowledge(self.record, commit), self._shares_of(ds)
        if cause.sees_future and shares.latest_up > cause.now:
            return  # minReadySeconds counts from when the pod was seen: differs by process
        until = cause.now - (cause.time - cause.sent_at)
        try:
            yield from _check_target(ds, status.update_revision, past)
            faults = []
            for target in _marks(ds, status.update_revision, past):
                recount = Recount(shares, past, until=until, target=target)
                faults.append(recount.fault(counts_of(status)))
                if not faults[-1]:
                    return
            yield faults[0]
        except KnowledgeTooOld:
            return

    def _check_meaning(self, commit: Commit) -> Iterable[str]:
        """The conditions follow from the counts, and Ready from what the writer surely knew."""
        cause, ds, status = commit.cause, commit.before, commit.after.status
        if cause is None or commit.time < cause.clock_set_at + _CLOCK_NOTICED_AFTER:
            return
        until = cause.now - (cause.time - cause.sent_at)
        yield from condition_faults(ds, status, until)
        conditions = {each.type: each for each in status.conditions}
        if (
            is_true_condition(conditions, "Complete")
            or not is_true_condition(conditions, "Ready")
            or cause.sees_future
        ):
            return
        if not self._knew_everything(commit):
            return
        left = list(not_as_declared(Oracle(self.record.cluster, ds, until)))
        if left:
            yield f"Ready is set, and {', '.join(left[:3])} are not as declared"

    def _knew_everything(self, commit: Commit) -> bool:
        """Whether the writer knew all pods, nodes and revisions as they are stored."""
        assert commit.cause is not None
        known = commit.cause.known_versions
        began = self.record.leader_since.get(commit.actor, 0)
        for each in reversed(self.record.commits):
            if each.version <= min(known.get(kind, 0) for kind in COUNTED) or each.version <= began:
                return True
            if each.kind in COUNTED and each.version > known.get(each.kind, 0):
                return False
        return True

    def _shares_of(self, ds: DaemonSet) -> CurrentCounts:
        shares = self._shares.get(ds.uid)
        if shares is None or not shares.is_for(ds):
            shares = self._shares[ds.uid] = CurrentCounts(self.record, ds)
        shares.follow()
        return shares


def _check_target(ds: DaemonSet, hash: str, past: WriterKnowledge) -> Iterable[str]:
    """An Advanced DaemonSet's status names its target, which changes only with the spec (R1)."""
    if ds.flavour is Flavour.NATIVE:
        return
    observed = ds.metadata.generation == ds.status.observed_generation
    if observed and hash == ds.status.update_revision:
        return
    if hash not in past.targets(ds):
        yield f"the status names the target {hash}, it is {', '.join(past.targets(ds)) or 'none'}"


def _marks(ds: DaemonSet, hash: str, past: WriterKnowledge) -> Iterator[RevisionMark]:
    """Yield the marks by which target pods may be recognised.

    That is the hash in the status. A native DaemonSet's status has none: there it is the template
    generation, with the hash of each revision that fits.
    """
    if ds.flavour is Flavour.ADVANCED:
        yield hash, ""
        return
    number = ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, "")
    for each in chain(past.targets(ds), [""]):
        yield each, number


def _check_generation(before: DaemonSet, status: DaemonSetStatus) -> Iterable[str]:
    """observedGeneration is the generation, also where another client wrote a higher one."""
    there, observed = before.metadata.generation, status.observed_generation
    if observed != there:
        yield f"observedGeneration is {observed}, the generation is {there}"


def _check_sums(status: DaemonSetStatus) -> Iterable[str]:
    """available <= ready <= current <= desired, and unavailable is desired - available."""
    available, ready, current, desired = (
        status.available,
        status.ready,
        status.current,
        status.desired,
    )
    if not available <= ready <= current <= desired:
        yield f"{available} available of {ready} ready of {current} current"
    if status.unavailable != desired - available:
        yield f"{status.unavailable} unavailable, {available} available of {desired}"


def _check_conditions(old: DaemonSetStatus, new: DaemonSetStatus) -> Iterable[str]:
    """No condition is dropped, and a condition that stays keeps its lastTransitionTime."""
    known = {each.type: each for each in old.conditions}
    lost = known.keys() - {each.type for each in new.conditions}
    if lost:
        yield f"the conditions {', '.join(sorted(lost))} were dropped"
    for each in new.conditions:
        was = known.get(each.type)
        stayed = was is not None and was.status == each.status
        if was is not None and stayed and was.last_transition_time != each.last_transition_time:
            yield f"condition {each.type} stayed {each.status} and its time changed"
