"""What every invariant is: something that looks at each commit and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from everynode.sim.record import Commit, Record

SETS: Final = ("daemonsets.apps", "daemonsets.apps.kruise.io")


class Breach(msgspec.Struct, frozen=True):
    """A promise that was not kept."""

    promise: str
    time: float
    message: str


class Invariant:
    """One promise. Knows nothing but history."""

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()  # of objects whose commits it judges; all where empty
    ours: ClassVar[bool] = False  # whether it judges only what controllers write
    noted: ClassVar[tuple[str, ...]] = ()  # kinds of which it has to know, whoever writes

    def __init__(self, record: Record) -> None:
        self.record = record

    def looks_at(self, kind: str, *, ours: bool) -> bool:
        """Whether commits of this kind, by a controller or by somebody else, are its matter."""
        return (ours or not self.ours) and (not self.kinds or kind in self.kinds)

    def judge(self, commit: Commit) -> Iterable[str]:
        """What is wrong with this commit."""
        return ()

    def note(self, commit: Commit) -> None:
        """Remember what this commit means for those to come."""
