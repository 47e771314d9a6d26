"""What a mutant is: one deliberate bug, written down as text that replaces other text."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent
LISTS: Final = ("decide.toml", "controller.toml")


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One bug that somebody could have written."""

    name: str
    suffers: str  # what a user would suffer from it
    promise: str  # which promise should show it, as the simulator numbers them
    file: str  # below src/everynode
    old: str
    new: str

    def mutate(self, text: str) -> str:
        """The file with the bug in it; raises ValueError where there is no one place for it."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: its old text occurs {found} times in {self.file}")
        return text.replace(self.old, self.new)

    def plant(self, sources: Path) -> None:
        """Put the bug into a copy of the sources."""
        path = sources / "everynode" / self.file
        path.write_text(self.mutate(path.read_text(encoding="utf-8")), encoding="utf-8")


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: list[Mutant]


def read_mutants() -> list[Mutant]:
    """All mutants, in the order in which they are written down."""
    folder = Path(__file__).resolve().parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in LISTS]
    lists = [msgspec.convert(tomllib.loads(text), _List) for text in texts]
    return [each for found in lists for each in found.mutant]
