"""Tables as kubectl prints them: a head in capitals, columns that line up, three spaces between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from everynode.cli.terminal.style import Style

_GAP: Final = "   "
_SHORTEST: Final = 8  # a last column is not cut below this width


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    colour: str | None = None


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str | Cell]], style: Style
) -> list[str]:
    """Return the lines of a table; on a terminal the last column is cut at its edge."""
    cells = [[each if isinstance(each, Cell) else Cell(each) for each in row] for row in rows]
    widths = [
        max([len(title), *(len(row[index].text) for row in cells)])
        for index, title in enumerate(head)
    ]
    room = style.width - sum(widths[:-1]) - len(_GAP) * (len(head) - 1)
    last = max(_SHORTEST, room) if style.is_terminal else widths[-1]
    lines = [_GAP.join(t.ljust(w) for t, w in zip(head, widths, strict=True)).rstrip()]
    for row in cells:
        *most, end = row
        parts = [
            style.paint(cell.text, cell.colour) + " " * (width - len(cell.text))
            for cell, width in zip(most, widths, strict=False)
        ]
        parts.append(style.paint(shorten(end.text, last), end.colour))
        lines.append(_GAP.join(parts).rstrip())
    return lines


def shorten(text: str, width: int) -> str:
    """Return the text, cut with an ellipsis if it is longer than the width."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
