"""Tables as kubectl prints them: a head in capitals, columns that line up, three spaces between.

On a terminal that is too narrow for that there are two spaces or one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from everynode.cli.terminal.style import Style

_GAPS: Final = ("   ", "  ", " ")
_SHORTEST: Final = 8  # a last column that has to be cut further is not cut at all


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    colour: str | None = None


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str | Cell]], style: Style
) -> list[str]:
    """Return the lines of a table; on a terminal the last column is cut at its edge, if need be."""
    cells = [[each if isinstance(each, Cell) else Cell(each) for each in row] for row in rows]
    widths = [
        max([len(title), *(len(row[index].text) for row in cells)])
        for index, title in enumerate(head)
    ]
    gap, last = _fit(widths, style)
    lines = [gap.join(t.ljust(w) for t, w in zip(head, widths, strict=True)).rstrip()]
    for row in cells:
        *most, end = row
        parts = [
            style.paint(cell.text, cell.colour) + " " * (width - len(cell.text))
            for cell, width in zip(most, widths, strict=False)
        ]
        parts.append(style.paint(shorten(end.text, last), end.colour))
        lines.append(gap.join(parts).rstrip())
    return lines


def _fit(widths: Sequence[int], style: Style) -> tuple[str, int]:
    """Return the gap between the columns, and the width of the last one."""
    if style.is_terminal:
        least = min(_SHORTEST, widths[-1])
        for gap in _GAPS:
            room = style.width - sum(widths[:-1]) - len(gap) * (len(widths) - 1)
            if room >= least:
                return gap, min(room, widths[-1])
    return _GAPS[0], widths[-1]


def shorten(text: str, width: int) -> str:
    """Return the text, cut with an ellipsis if it is longer than the width."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
