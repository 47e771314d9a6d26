"""What every invariant is: something that looks at each commit and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from everynode.sim.record import Commit, Record


class Breach(msgspec.Struct, frozen=True):
    """A promise that was not kept."""

    promise: str
    time: float
    message: str


class Invariant:
    """One promise. Knows nothing but history."""

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init__(self, record: Record) -> None:
        self.record = record

    def judge(self, commit: Commit) -> Iterable[str]:
        """What is wrong with this commit."""
        return ()
