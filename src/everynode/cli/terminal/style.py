"""Style: colours and signs where a terminal shows them, plain text everywhere else."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from typing import Final, TextIO

import click

from everynode.errors import replace_control_characters

_SIGNS: Final = "●◐✗○◇·━█░"
_ESCAPES: Final = re.compile("(\x1b\\[[0-9;]*m)")
_HEAD: Final = re.compile(r"  +\S+ +|\w+: |")  # a word at the beginning, and what follows it
_PLAIN_WIDTH: Final = 100  # where the output is no terminal


class Style:
    """What the stream can show."""

    def __init__(self, stream: TextIO) -> None:
        self.is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.coloured = self.is_terminal and not os.environ.get("NO_COLOR")
        self.signs = self.is_terminal and can_encode(stream, _SIGNS)

    @property
    def width(self) -> int:
        """How long a line may be."""
        return shutil.get_terminal_size().columns if self.is_terminal else _PLAIN_WIDTH

    @property
    def height(self) -> int:
        """How many lines the terminal shows."""
        return shutil.get_terminal_size().lines

    def paint(self, text: str, colour: str | None = None, *, bold: bool = False) -> str:
        """Return the text with its colour; control characters of others become question marks."""
        clean = replace_control_characters(text)
        if not self.coloured or not (colour or bold):
            return clean
        return click.style(clean, fg=colour, bold=bold or None)

    def dim(self, text: str) -> str:
        """Return a text that matters less."""
        return self.paint(text, "bright_black")

    def wrap(self, line: str) -> str:
        """Return a plain line, on a terminal broken between words and indented below its text."""
        if not self.is_terminal or len(line) <= self.width:
            return line
        head = _HEAD.match(line)
        assert head is not None
        lines = textwrap.wrap(
            line,
            max(20, self.width),
            subsequent_indent=" " * head.end(),
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(lines)


def cut_line(line: str, width: int) -> str:
    """Return a painted line, cut to the width with an ellipsis; colours take none of it."""
    if len(_ESCAPES.sub("", line)) <= width:
        return line
    room, parts = max(0, width - 1), []
    for part in _ESCAPES.split(line):
        if part.startswith("\x1b"):
            parts.append(part)
            continue
        parts.append(part[:room])
        room = max(0, room - len(part))
    return "".join(parts) + "…"


def can_encode(stream: TextIO, text: str) -> bool:
    """Whether the stream can write the text."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
