"""Check: the base class of every check, which is called with each commit and yields violations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from everynode.sim.history.record import Commit, WorldRecord

DAEMONSET_KINDS: Final = ("daemonsets.apps", "daemonsets.apps.kruise.io")


class Violation(msgspec.Struct, frozen=True):
    """A broken promise: which one, when, and what happened."""

    promise: str
    time: float
    message: str


class Check:
    """One promise, checked with nothing but the recorded history."""

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()  # kinds whose commits it checks; empty: all
    controller_only: ClassVar[bool] = False  # whether it checks only what controllers write
    observed_kinds: ClassVar[tuple[str, ...]] = ()  # kinds that it observes, by any writer

    def __init__(self, record: WorldRecord) -> None:
        self.record = record

    def applies_to(self, kind: str, *, by_controller: bool) -> bool:
        """Whether this check is interested in commits of this kind, by a controller or not."""
        if self.controller_only and not by_controller:
            return False
        return not self.kinds or kind in self.kinds

    def check(self, commit: Commit) -> Iterable[str]:
        """Yield what is wrong with this commit."""
        return ()

    def observe(self, commit: Commit) -> None:
        """Note a commit of one of the observed kinds."""
