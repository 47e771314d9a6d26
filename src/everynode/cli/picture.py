"""A fleet as people see it: one mark per node, redrawn in place or printed line by line."""

from __future__ import annotations

import enum
import os
import shutil
import textwrap
from collections.abc import Mapping
from typing import Final, TextIO

import click

_ROW: Final = 50  # nodes per line, where there is room
_INDENT: Final = "   "
_UP: Final = "\x1b[{}A\x1b[J"


class Mark(enum.Enum):
    """How one node stands: its letter for plain lines, its sign and colour for a terminal."""

    MISSING = (".", "·", "bright_black")
    OLD = ("o", "○", "blue")
    GOING = ("-", "◌", "yellow")
    COMING = ("+", "◐", "yellow")
    NEW = ("N", "●", "green")


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
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._coloured = self._live and not os.environ.get("NO_COLOR")
        self._signs = self._live and _can_say(stream, "".join(mark.value[1] for mark in Mark))
        self._drawn: list[str] = []

    def draw(self, marks: Mapping[str, Mark], caption: str) -> None:
        """Show the fleet as it is now; nothing happens when it looks the same as before."""
        lines = [*self._rows(marks), *(self._wrapped(caption) if self._live else [caption])]
        if lines == self._drawn:
            return
        if self._live:
            if self._drawn:
                self._stream.write(_UP.format(len(self._drawn)))
            self._stream.write("".join(f"{_INDENT}{line}\n" for line in lines))
        else:
            self._stream.write("  ".join(lines) + "\n")
        self._stream.flush()
        self._drawn = lines

    def say(self, text: str = "") -> None:
        """Print a line that stays."""
        self._stream.write(f"{text}\n")
        self._stream.flush()
        self._drawn = []

    def title(self, text: str, note: str = "") -> None:
        """Print a heading that stays, and what is to be said beside it."""
        gap = " " * max(1, 14 - len(text)) if note else ""
        self.say(f"\n{self.styled(text, bold=True)}{gap}{note}")

    def styled(self, text: str, *, bold: bool = False, colour: str | None = None) -> str:
        """Return a text as it looks best here."""
        return click.style(text, bold=bold or None, fg=colour) if self._coloured else text

    def legend(self) -> str:
        """What the marks mean."""
        return "   ".join(f"{self._mark(mark)} {text}" for mark, text in LEGEND.items())

    def _rows(self, marks: Mapping[str, Mark]) -> list[str]:
        cells = [self._mark(marks[name]) for name in sorted(marks)]
        space = " " if self._live else ""
        row = self._fitting() if self._live else _ROW
        return [space.join(cells[i : i + row]) for i in range(0, len(cells), row)] or [""]

    def _fitting(self) -> int:
        """How many marks fit on a line."""
        return max(1, min(_ROW, self._width() // 2))

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, self._width())

    def _width(self) -> int:
        """How long a line may be: one that the terminal breaks could not be drawn over."""
        return max(8, shutil.get_terminal_size().columns - len(_INDENT))

    def _mark(self, mark: Mark) -> str:
        letter, sign, colour = mark.value
        return self.styled(sign if self._signs else letter, colour=colour)


def _can_say(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
