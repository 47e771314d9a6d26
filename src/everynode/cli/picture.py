"""A fleet as people see it: one mark per node, redrawn in place or printed line by line."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TextIO

_ROW: Final = 50  # nodes per line
_UP: Final = "\x1b[{}A\x1b[J"


class Mark(enum.Enum):
    """How one node stands: its letter for plain lines, its colour for a terminal."""

    MISSING = (".", "\x1b[90m·")
    OLD = ("o", "\x1b[34m○")
    GOING = ("-", "\x1b[33m◌")
    COMING = ("+", "\x1b[33m◐")
    NEW = ("N", "\x1b[32m●")


LEGEND: Final = {
    Mark.OLD: "old",
    Mark.GOING: "stopping",
    Mark.COMING: "starting",
    Mark.NEW: "new and available",
    Mark.MISSING: "no pod",
}


class Picture:
    """Draws the marks of all nodes whenever they change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._drawn: list[str] = []

    def draw(self, marks: Mapping[str, Mark], caption: str) -> None:
        """Show the fleet as it is now; nothing happens when it looks the same as before."""
        lines = [*self._rows(marks), caption]
        if lines == self._drawn:
            return
        if self._live:
            if self._drawn:
                self._stream.write(_UP.format(len(self._drawn)))
            self._stream.write("\n".join(lines) + "\n")
        else:
            self._stream.write("  ".join(lines) + "\n")
        self._stream.flush()
        self._drawn = lines

    def say(self, text: str = "") -> None:
        """Print a line that stays."""
        self._stream.write(f"{text}\n")
        self._stream.flush()
        self._drawn = []

    def legend(self) -> str:
        """What the marks mean."""
        return "   ".join(f"{self._mark(mark)} {text}" for mark, text in LEGEND.items())

    def _rows(self, marks: Mapping[str, Mark]) -> list[str]:
        cells = [self._mark(marks[name]) for name in sorted(marks)]
        space = " " if self._live else ""
        return [space.join(cells[i : i + _ROW]) for i in range(0, len(cells), _ROW)] or [""]

    def _mark(self, mark: Mark) -> str:
        plain, coloured = mark.value
        return f"{coloured}\x1b[0m" if self._live else plain
