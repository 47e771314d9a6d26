"""Grids: the nodes of a fleet as cells, in panels side by side or in rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from everynode.forecast.recording import NodeState
from everynode.pictures.cells import draw_cell
from everynode.pictures.svg import MARGIN, WIDTH, Svg

_BETWEEN: Final = 22.0  # two panels


class Panel(NamedTuple):
    """One grid with what it shows."""

    title: str
    caption: str
    states: dict[str, NodeState]
    marked: frozenset[str] = frozenset()  # nodes with a ring
    time: str = ""


def draw_panels(svg: Svg, panels: Sequence[Panel], top: float, *, columns: int) -> float:
    """Draw two panels in each row; return where they end."""
    room = (WIDTH - 2 * MARGIN - _BETWEEN) / 2
    pitch = room / columns
    rows = -(-len(panels[0].states) // columns)
    height = 50 + rows * pitch
    for number, panel in enumerate(panels):
        left = MARGIN + (number % 2) * (room + _BETWEEN)
        y = top + (number // 2) * (height + 26)
        svg.text(left, y + 13, panel.title, "text head")
        svg.text(left, y + 33, panel.caption, "quiet small")
        if panel.time:
            svg.text(left + room - 4, y + 13, panel.time, "quiet small end")
        _draw_cells(svg, panel, left, y + 46, pitch, columns)
    return top + -(-len(panels) // 2) * (height + 26) - 26


def draw_row(svg: Svg, panel: Panel, top: float, pitch: float) -> float:
    """Draw one panel as a single row of cells with its words beside them; return where it ends."""
    svg.text(MARGIN, top + pitch / 2 - 6, panel.title, "text head")
    svg.text(MARGIN, top + pitch / 2 + 14, panel.caption, "quiet small")
    left = WIDTH - MARGIN - pitch * len(panel.states)
    _draw_cells(svg, panel, left, top, pitch, len(panel.states))
    return top + pitch


def _draw_cells(
    svg: Svg, panel: Panel, left: float, top: float, pitch: float, columns: int
) -> None:
    size = round(pitch * 0.78, 1)
    for number, (name, state) in enumerate(sorted(panel.states.items())):
        x = left + (number % columns) * pitch
        y = top + (number // columns) * pitch
        if name in panel.marked:
            edge = (pitch - size) / 2 - 0.3
            side = size + 2 * edge - 0.8
            svg.rect(x - edge + 0.4, y - edge + 0.4, side, side, "ring text-line", round=3)
        draw_cell(svg, state, x, y, size)
