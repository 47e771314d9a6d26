"""Mutant: one deliberate bug, defined as a text replacement in one source file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent
LISTS: Final = ("decide.toml", "controller.toml")


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One plausible bug."""

    name: str
    suffers: str  # what a user would suffer
    promise: str  # the promise that should be broken, by the simulator's number
    file: str  # below src/everynode
    old: str
    new: str

    def mutate(self, text: str) -> str:
        """The text with the bug; raises ValueError unless `old` occurs exactly once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: its old text occurs {found} times in {self.file}")
        return text.replace(self.old, self.new)

    def plant(self, sources: Path) -> None:
        """Write the bug into a copy of the sources."""
        path = sources / "everynode" / self.file
        path.write_text(self.mutate(path.read_text(encoding="utf-8")), encoding="utf-8")


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: list[Mutant]


def read_mutants() -> list[Mutant]:
    """All mutants, in the order of the .toml files."""
    folder = Path(__file__).resolve().parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in LISTS]
    lists = [msgspec.convert(tomllib.loads(text), _List) for text in texts]
    return [each for found in lists for each in found.mutant]
