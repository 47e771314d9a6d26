"""Chart of a rollout in text: nodes updated and nodes down over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from everynode.cli.terminal.text import format_duration

WIDTH: Final = 60
NARROWEST: Final = 30  # the axis needs room for three times
HEIGHT: Final = 6
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
MARGIN: Final = 8
Point = tuple[float, int, int]  # seconds, updated, down


def draw(
    curve: Sequence[Point],
    *,
    total: int,
    most: int,
    room: int = MARGIN + WIDTH,
    end: float | None = None,
) -> Iterator[str]:
    """The lines of the chart, at most `room` columns wide; none if nothing was updated.

    `end` is the time at its right edge, where that is not the end of the curve.
    """
    width = min(WIDTH, max(NARROWEST, room - MARGIN))
    if end is None:
        end = curve[-1][0] if curve else 0.0
    if not curve or end <= 0 or total <= 0:
        return
    columns = [end * (index + 1) / width for index in range(width)]
    updated = [_updated_at(curve, time) for time in columns]
    labels = {0: f"{total:,}", HEIGHT - 1: "0"}
    for row in range(HEIGHT):
        floor = HEIGHT - 1 - row
        cells = "".join(_cell(value * HEIGHT / total - floor) for value in updated)
        yield f"{labels.get(row, ''):>{MARGIN - 2}} │{cells}".rstrip()
    yield f"{'updated':>{MARGIN - 1}}└{'─' * width}"
    down = [_most_down(curve, time - end / width, time) for time in columns]
    bars = "".join(_cell(value / most) if most else " " for value in down)
    yield f"{'down':>{MARGIN - 1}} {bars}".rstrip()
    yield _axis(end, width)


def _axis(end: float, width: int) -> str:
    middle, last = format_duration(end / 2), format_duration(end)
    line = f"{' ' * MARGIN}0"
    line = line.ljust(MARGIN + width // 2 - len(middle) // 2) + middle
    return line.ljust(MARGIN + width - len(last)) + last


def _updated_at(curve: Sequence[Point], time: float) -> int:
    return curve[bisect_right(curve, time, key=lambda point: point[0]) - 1][1]


def _most_down(curve: Sequence[Point], begin: float, end: float) -> int:
    """The most nodes that were down at any time in between."""
    first = max(0, bisect_right(curve, begin, key=lambda point: point[0]) - 1)
    last = bisect_right(curve, end, key=lambda point: point[0])
    return max((point[2] for point in curve[first:last]), default=0)


def _cell(share: float) -> str:
    """One character filled to a share of its height; any share above zero is visible."""
    eighths = round(min(max(share, 0.0), 1.0) * 8)
    return _EIGHTHS[max(eighths, 1) if share > 0 else 0]
