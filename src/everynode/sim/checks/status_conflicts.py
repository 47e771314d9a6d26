"""S11 and R9: a status that another manager wrote is not overwritten at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Final

from everynode.api.daemonset import DaemonSetStatus
from everynode.sim.checks.check import DAEMONSET_KINDS, Check
from everynode.sim.checks.status_recount import counts_of
from everynode.sim.history.record import Commit, WorldRecord

_BACK_OFF: Final = 60.0  # seconds without a write after another client wrote the status
_INTERVAL: Final = 0.4  # seconds in which three writes are too many


class StatusConflicts(Check):
    """A controller that sees another client write the same numbers backs off for a while."""

    id: ClassVar[str] = "S11"
    title: ClassVar[str] = "no fights over a status"
    kinds: ClassVar[tuple[str, ...]] = DAEMONSET_KINDS
    controller_only: ClassVar[bool] = True

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._times: dict[tuple[str, str], deque[float]] = {}  # when our last statuses were written

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a status that was written after another client's."""
        if commit.cause is None or commit.before is None or commit.after is None:
            return
        yield from self._check_rate(commit)
        mine, other = self._last_writes(commit)
        if mine is None or other is None:
            return
        known = other.version <= commit.cause.known_versions.get(commit.kind, 0)
        passed = commit.time - other.time
        differs = _numbers(other.after.status) != _numbers(mine.after.status)
        if known and differs and passed < _BACK_OFF - 1:
            yield f"the status of {commit.after.name} was written {passed:.1f} s after another's"

    def _last_writes(self, commit: Commit) -> tuple[Commit | None, Commit | None]:
        """This process's last write of the same DaemonSet, and another's change of numbers since.

        Both are None if the leader changed in between: a new leader may not know earlier writes.
        """
        other: Commit | None = None
        for each in islice(reversed(self.record.commits), 1, None):
            if each.kind.startswith("leases"):
                return None, None
            if not _updates_same(each, commit):
                continue
            if each.actor == commit.actor:
                return each, other
            if _numbers(each.before.status) != _numbers(each.after.status):
                other = each
        return None, other

    def _check_rate(self, commit: Commit) -> Iterable[str]:
        """A status is written a few times a second at most; a new leader may write once more."""
        times = self._times.setdefault((commit.actor, commit.after.uid), deque(maxlen=3))
        times.append(commit.time)
        if len(times) == 3 and times[-1] - times[0] < _INTERVAL:
            yield f"L4: the status of {commit.after.name} was written three times in {_INTERVAL} s"


def _numbers(status: DaemonSetStatus) -> tuple[int | str, ...]:
    return (status.observed_generation, *counts_of(status), status.unavailable)


def _updates_same(each: Commit, commit: Commit) -> bool:
    """Whether a commit updates the DaemonSet that another commit updates."""
    if each.kind != commit.kind or each.before is None or each.after is None:
        return False
    return bool(each.after.uid == commit.after.uid)
