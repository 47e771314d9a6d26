"""S11: the status never lies about what was seen, and never goes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar, Final

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.recount import Doubtful, Mark, Past, Recount, Shares, counts_of
from everynode.sim.record import Commit, Record

_NOTICED: Final = 11.0  # seconds after which everybody knows that the clock was set


class Status(Invariant):
    """What we write into a status."""

    id: ClassVar[str] = "S11"
    title: ClassVar[str] = "the status is a recount and never goes back"
    kinds: ClassVar[tuple[str, ...]] = SETS
    ours: ClassVar[bool] = True

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._shares: dict[str, Shares] = {}

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
        if new.observed_generation != max(old.observed_generation, before.metadata.generation):
            there = before.metadata.generation
            yield f"generation {new.observed_generation} is said to be observed, it is {there}"
        if new.available > new.ready or new.ready > new.current or new.current > new.desired:
            yield f"{new.available} available of {new.ready} ready of {new.current} current"
        if new.unavailable != new.desired - new.available:
            yield f"{new.unavailable} unavailable, {new.available} available of {new.desired}"
        yield from self._judge_counts(commit)
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

    def _judge_counts(self, commit: Commit) -> Iterable[str]:
        """Every count is one that its writer may have made, by what it knew and by its clock."""
        asked, ds, said = commit.asked, commit.before, commit.after.status
        if asked is None or commit.time < asked.clock_set_at + _NOTICED:
            return
        past, shares = Past(self.record, commit), self._shares_of(ds)
        until = asked.now - (asked.time - asked.sent_at)
        try:
            yield from _judge_target(ds, said.update_revision, past)
            faults = []
            for target in _marks(ds, said.update_revision, past):
                recount = Recount(shares, past, until=until, target=target)
                faults.append(recount.fault(counts_of(said)))
                if not faults[-1]:
                    return
            yield faults[0]
        except Doubtful:
            return

    def _shares_of(self, ds: DaemonSet) -> Shares:
        shares = self._shares.get(ds.uid)
        if shares is None or not shares.is_for(ds):
            shares = self._shares[ds.uid] = Shares(self.record, ds)
        shares.follow()
        return shares


def _judge_target(ds: DaemonSet, hash: str, past: Past) -> Iterable[str]:
    """The status of an Advanced DaemonSet names its target, which stays as the spec does (R1)."""
    if ds.flavour is Flavour.NATIVE:
        return
    observed = ds.metadata.generation <= ds.status.observed_generation
    if observed and hash == ds.status.update_revision:
        return
    if hash not in past.targets(ds):
        yield f"{hash} is said to be the target, it is {', '.join(past.targets(ds)) or 'none'}"


def _marks(ds: DaemonSet, hash: str, past: Past) -> Iterator[Mark]:
    """What may mark pods of the target: the hash in the status; a native one shows none."""
    if ds.flavour is Flavour.ADVANCED:
        yield hash, ""
        return
    number = ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, "")
    for each in chain(past.targets(ds), [""]):
        yield each, number
