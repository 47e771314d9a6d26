"""Grid of nodes: one mark per node, redrawn in place on a terminal, or printed line by line."""

from __future__ import annotations

import enum
import os
import shutil
import textwrap
from collections.abc import Mapping
from typing import Final, TextIO

import click

from everynode.cli.terminal.style import can_encode

_ROW: Final = 50  # most nodes per line
_INDENT: Final = "   "
_CURSOR_UP_AND_CLEAR: Final = "\x1b[{}A\x1b[J"


class NodeMark(enum.Enum):
    """State of one node: its letter for plain text, its sign and colour for a terminal."""

    MISSING = (".", "·", "bright_black")
    OLD = ("o", "○", "blue")
    GOING = ("-", "◌", "yellow")
    COMING = ("+", "◐", "yellow")
    NEW = ("N", "●", "green")
    FAILING = ("x", "✗", "red")
    SILENT = ("?", "?", "magenta")


LEGEND: Final = {
    NodeMark.OLD: "old",
    NodeMark.GOING: "stopping",
    NodeMark.COMING: "starting",
    NodeMark.NEW: "new",
    NodeMark.FAILING: "failing",
    NodeMark.SILENT: "silent",
    NodeMark.MISSING: "no pod",
}


class NodeGrid:
    """Draws the marks of all nodes whenever they change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._coloured = self._is_terminal and not os.environ.get("NO_COLOR")
        self._signs = self._is_terminal and can_encode(
            stream, "".join(mark.value[1] for mark in NodeMark)
        )
        self._drawn: list[str] = []

    def draw(self, marks: Mapping[str, NodeMark], caption: str) -> None:
        """Draw the nodes if they changed; a pipe gets a line only when the caption does."""
        if not self._is_terminal:
            if [caption] != self._drawn:
                self._stream.write("  ".join([*self._rows(marks), caption]) + "\n")
                self._stream.flush()
                self._drawn = [caption]
            return
        lines = [*self._rows(marks), *self._wrap(caption)]
        if lines == self._drawn:
            return
        if self._drawn:
            self._stream.write(_CURSOR_UP_AND_CLEAR.format(len(self._drawn)))
        self._stream.write("".join(f"{_INDENT}{line}\n" for line in lines))
        self._stream.flush()
        self._drawn = lines

    def say(self, text: str = "") -> None:
        """Print a line that stays."""
        self._stream.write(f"{text}\n")
        self._stream.flush()
        self._drawn = []

    def note(self, text: str) -> None:
        """Print an indented remark that stays, wrapped on a terminal."""
        lines = self._wrap(text) if self._is_terminal else [text]
        self.say("\n".join(f"{_INDENT}{line}" for line in lines))

    def title(self, text: str, note: str = "") -> None:
        """Print a heading that stays, with a note beside it."""
        gap = " " * max(1, 14 - len(text)) if note else ""
        self.say(f"\n{self.styled(text, bold=True)}{gap}{note}")

    def styled(self, text: str, *, bold: bool = False, colour: str | None = None) -> str:
        """Return a text with its style, if the stream has colours."""
        return click.style(text, bold=bold or None, fg=colour) if self._coloured else text

    def legend(self) -> str:
        """What the marks mean."""
        return "   ".join(f"{self._mark(mark)} {text}" for mark, text in LEGEND.items())

    def _rows(self, marks: Mapping[str, NodeMark]) -> list[str]:
        cells = [self._mark(marks[name]) for name in sorted(marks)]
        space = " " if self._is_terminal else ""
        row = self._marks_per_row() if self._is_terminal else _ROW
        return [space.join(cells[i : i + row]) for i in range(0, len(cells), row)] or [""]

    def _marks_per_row(self) -> int:
        """How many marks fit on a line."""
        return max(1, min(_ROW, self._width() // 2))

    def _wrap(self, text: str) -> list[str]:
        return textwrap.wrap(text, self._width())

    def _width(self) -> int:
        """Longest line: a line that the terminal wraps could not be redrawn."""
        return max(8, shutil.get_terminal_size().columns - len(_INDENT))

    def _mark(self, mark: NodeMark) -> str:
        letter, sign, colour = mark.value
        return self.styled(sign if self._signs else letter, colour=colour)
