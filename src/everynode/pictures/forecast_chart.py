"""Forecast chart: nodes updated and nodes down over time, of one forecast or of two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from everynode.forecast.answer import Forecast
from everynode.forecast.curve import Point, thin_out
from everynode.pictures.svg import MARGIN, WIDTH, Svg, timecode, wrapped

_LEFT: Final = 62
_RIGHT: Final = WIDTH - MARGIN - 6
_UPPER: Final = 150  # height of the nodes that are updated
_LOWER: Final = 62  # of those that are down
_MAX_POINTS: Final = 300
_COLUMNS: Final = 180  # of the nodes that are down: each shows the most of its time
_TICKS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY: Final = 86400
_SHORT: Final = 100.0  # seconds; in longer rollouts a fraction of one is not seen
# Colours of the updated and of the down nodes of one forecast; of two, one for each forecast.
_ALONE: Final = ("state-5", "state-6")
_COMPARED: Final = ("state-5", "state-2")


class Drawn(msgspec.Struct, frozen=True):
    """A forecast in a chart."""

    answer: Forecast
    label: str  # how it differs from the other one
    summary: str  # one sentence


def draw_forecasts(heading: str, drawn: Sequence[Drawn]) -> str:
    """Return the chart of one forecast, or of two side by side."""
    svg = Svg(heading, " ".join(_describe(each, alone=len(drawn) == 1) for each in drawn))
    bottom = _draw_head(svg, heading, drawn)
    chart = _Chart(svg, drawn, top=bottom + 42)
    chart.draw()
    return svg.render(chart.bottom + 40)


def _describe(drawn: Drawn, *, alone: bool) -> str:
    answer = drawn.answer
    who = "" if alone else f"{drawn.label}: "
    promised = f"{_promised_down(answer):,} promised"
    return f"{who}{drawn.summary} At most {answer.most_down:,} nodes are down at once, {promised}."


def _promised_down(answer: Forecast) -> int:
    """How many nodes may be down: with maxSurge the new pod comes before the old one goes."""
    return 0 if answer.surging else answer.budget


def _draw_head(svg: Svg, heading: str, drawn: Sequence[Drawn]) -> float:
    """Draw the heading and a sentence for each forecast; return where they end."""
    room, y = WIDTH - 2 * MARGIN, 38.0
    for line in wrapped(heading, room, size=18, bold=True):
        svg.text(MARGIN, y, line, "text heading")
        y += 23
    y += 2
    for number, each in enumerate(drawn):
        if len(drawn) > 1:
            y += 4
            svg.line(MARGIN, y - 5, MARGIN + 26, y - 5, f"curve {_look(number, compared=True)}")
            for line in wrapped(f"{'AB'[number]}: {each.label}", room - 38, bold=True):
                svg.text(MARGIN + 38, y, line, "text bold")
                y += 19
        left = MARGIN + (38 if len(drawn) > 1 else 0)
        for line in wrapped(each.summary, WIDTH - MARGIN - left):
            svg.text(left, y, line, "quiet")
            y += 19
    return y - 19


def _look(number: int, *, compared: bool, part: int = 0) -> str:
    """The classes of a curve: of the first or second forecast, updated (0) or down (1)."""
    colour = _COMPARED[number] if compared else _ALONE[part]
    return f"{colour}-line{' dashed' if number else ''}"


class _Chart:
    """Two panels with one time axis."""

    def __init__(self, svg: Svg, drawn: Sequence[Drawn], *, top: float) -> None:
        self._svg, self._drawn, self._top = svg, drawn, top
        answers = [each.answer for each in drawn]
        # A forecast that ends earlier stays as it is until the other one has ended.
        end = 1.02 * max(1.0, *(_end(each) for each in answers))
        self._end = end if end < _SHORT else float(round(end))
        self._total = max(1, *(each.nodes for each in answers))
        self._most = max(1, *(max(_promised_down(each), each.most_down) for each in answers))
        self._middle = top + _UPPER + 44  # where the lower panel begins
        self.bottom = self._middle + _LOWER

    def draw(self) -> None:
        """Draw grid, curves and promises."""
        self._grid()
        compared = len(self._drawn) > 1
        for number, each in enumerate(self._drawn):
            curve = self._round_times(each.answer.curve)
            if not curve:
                continue
            points = [*thin_out(curve, _MAX_POINTS), (self._end, *curve[-1][1:])]
            looks = [_look(number, compared=compared, part=part) for part in (0, 1)]
            updated = self._steps(points, 1, self._y_of_updated)
            down = self._steps(self._most_down(curve), 2, self._down)
            if not number:
                colours = [look.removesuffix("-line") for look in looks]
                self._svg.path(self._close_area(updated, self._y_of_updated), f"area {colours[0]}")
                self._svg.path(self._close_area(down, self._down), f"area {colours[1]}")
            self._svg.path(updated, f"curve {looks[0]}")
            self._svg.path(down, f"curve thin {looks[1]}")
        self._promises(compared=compared)

    def _round_times(self, curve: Sequence[Point]) -> list[Point]:
        """The curve in whole seconds, unless it is short: milliseconds differ between releases."""
        if self._end < _SHORT:
            return list(curve)
        return [(float(round(time)), updated, down) for time, updated, down in curve]

    def _most_down(self, curve: Sequence[Point]) -> list[Point]:
        """The most nodes down in each column: a node is taken as soon as another one is back."""
        step, position = self._end / _COLUMNS, 0
        found: list[Point] = []
        for column in range(_COLUMNS):
            begin, most = column * step, curve[position][2]
            while position + 1 < len(curve) and curve[position + 1][0] < begin + step:
                position += 1
                most = max(most, curve[position][2])
            if not found or found[-1][2] != most:
                found.append((begin, 0, most))
        return [*found, (self._end, 0, found[-1][2])]

    def _close_area(self, steps: str, y: Callable[[float], float]) -> str:
        return f"{steps}V{y(0):.1f}H{self._x(0):.1f}Z"

    def _grid(self) -> None:
        svg = self._svg
        for value in sorted({0, round(self._total / 2), self._total}):
            self._rule(self._y_of_updated(value), f"{value:,}")
        self._rule(self._down(0), "0")
        self._rule(self._down(self._most), f"{self._most:,}")
        svg.text(_LEFT, self._top - 10, "nodes updated", "text small bold")
        svg.text(_LEFT, self._middle - 12, "most nodes down", "text small bold")
        for time in _ticks(self._end):
            x = self._x(time)
            svg.line(x, self.bottom, x, self.bottom + 5, "quiet-line")
            svg.text(x, self.bottom + 21, timecode(time), "quiet small middle")

    def _rule(self, y: float, words: str) -> None:
        self._svg.line(_LEFT, y, _RIGHT, y, "line-line")
        self._svg.text(_LEFT - 9, y + 4.5, words, "quiet small end")

    def _promises(self, *, compared: bool) -> None:
        """Draw how many nodes may be down, and say it above the panel."""
        words = []
        for number, each in enumerate(self._drawn):
            promised = _promised_down(each.answer)
            words.append(f"{'AB'[number]} {promised:,}" if compared else f"{promised:,}")
            y = self._down(promised) - 3  # above the nodes that are down, where there are as many
            colour = _COMPARED[number] if compared else "text"
            self._svg.line(_LEFT, y, _RIGHT, y, f"promise {colour}-line")
        text = f"promised at most {', '.join(dict.fromkeys(words))}"
        self._svg.text(_RIGHT, self._middle - 12, text, "quiet small end")
        self._svg.line(
            *(_RIGHT - len(text) * 6.6 - 34, self._middle - 16.5),
            *(_RIGHT - len(text) * 6.6 - 10, self._middle - 16.5),
            "promise quiet-line" if compared else "promise text-line",
        )

    def _steps(self, points: Sequence[Point], column: int, y: Callable[[float], float]) -> str:
        found = ""
        for point in points:
            at, value = f"{self._x(point[0]):.1f}", f"{y(point[column]):.1f}"
            found += f"H{at}V{value}" if found else f"M{at} {value}"
        return found

    def _x(self, time: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * time / self._end

    def _y_of_updated(self, value: float) -> float:
        return self._top + _UPPER * (1 - value / self._total)

    def _down(self, value: float) -> float:
        return self.bottom - _LOWER * value / self._most


def _end(answer: Forecast) -> float:
    return max(answer.seconds, answer.curve[-1][0] if answer.curve else 0.0)


def _ticks(end: float, most: int = 5) -> Iterator[float]:
    """Yield round times from the beginning to the end, about as many as there is room for."""
    days = -(-end // (most * _DAY)) * _DAY
    step = next((each for each in _TICKS if end / each <= most), days)
    time = 0.0
    while time <= end:
        yield time
        time += step
