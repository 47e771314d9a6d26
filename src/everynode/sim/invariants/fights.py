"""S11 and R9: another manager's status is not written over at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Final

from everynode.api.daemonset import DaemonSetStatus
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.recount import counts_of
from everynode.sim.record import Commit, Record

_TRUCE: Final = 60.0
_INTERVAL: Final = 0.4


class Fights(Invariant):
    """Whoever sees that another writes the same numbers leaves the set alone for a while."""

    id: ClassVar[str] = "S11"
    title: ClassVar[str] = "no fights over a status"
    kinds: ClassVar[tuple[str, ...]] = SETS
    ours: ClassVar[bool] = True

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._times: dict[tuple[str, str], deque[float]] = {}  # of our last statuses

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a status that was written after somebody else's."""
        if commit.asked is None or commit.before is None or commit.after is None:
            return
        yield from self._judge_pace(commit)
        mine: Commit | None = None
        other: Commit | None = None
        for each in islice(reversed(self.record.commits), 1, None):
            if each.kind.startswith("leases"):
                return  # another term may know nothing of what was before
            if each.kind != commit.kind or each.before is None or each.after is None:
                continue
            if each.after.uid != commit.after.uid:
                continue
            if each.actor == commit.actor:
                mine = each
                break
            if _numbers(each.before.status) != _numbers(each.after.status):
                other = each
        if mine is None or other is None or other.version > commit.asked.floors.get(commit.kind, 0):
            return
        passed = commit.time - other.time
        if passed < _TRUCE - 1 and _numbers(other.after.status) != _numbers(mine.after.status):
            yield f"the status of {commit.after.name} was written {passed:.1f} s after another's"

    def _judge_pace(self, commit: Commit) -> Iterable[str]:
        """A status is written a few times a second at most; once more where a term begins."""
        times = self._times.setdefault((commit.actor, commit.after.uid), deque(maxlen=3))
        times.append(commit.time)
        if len(times) == 3 and times[-1] - times[0] < _INTERVAL:
            yield f"L4: the status of {commit.after.name} was written three times in {_INTERVAL} s"


def _numbers(status: DaemonSetStatus) -> tuple[int | str, ...]:
    return (status.observed_generation, *counts_of(status), status.unavailable)
