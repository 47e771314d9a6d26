"""S13: a controller that does not hold the lease writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.sim.checks.check import Check
from everynode.sim.history.record import Commit, WorldRecord


class OnlyLeaderWrites(Check):
    """Writes come from the holder of the lease, where there is a lease."""

    id: ClassVar[str] = "S13"
    title: ClassVar[str] = "only the leader writes"
    controller_only: ClassVar[bool] = True

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._holder = ""
        self._leased = False

    def check(self, commit: Commit) -> Iterable[str]:
        """Compare the writer with the holder of the lease."""
        if commit.kind.startswith("leases"):
            self._leased = True
            holder = commit.after.spec.holder_identity if commit.after is not None else ""
            self._holder = commit.actor if holder else ""
        elif self._leased and commit.actor != self._holder:
            yield f"{commit.actor} wrote to {commit.kind} while {self._holder or 'no process'} led"
