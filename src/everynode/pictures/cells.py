"""Cells: the shape and the colour of a node in each state, as the dashboard's page draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everynode.forecast.recording import NodeState
from everynode.pictures.svg import Svg

SIZE: Final = 18.0  # units of a cell whose shape is not scaled

# The class that colours a state, its words, and which shape it has (page/cells.js).
_STATES: Final = {
    NodeState.OLD: ("state-1", "old", "small"),
    NodeState.HELD: ("state-2", "held", "slit"),
    NodeState.TAKEN: ("state-3", "stopping", "lower"),
    NodeState.STARTING: ("state-4", "starting", "inner"),
    NodeState.UPDATED: ("state-5", "updated", "full"),
    NodeState.STUCK: ("state-6", "stuck", "notch"),
    NodeState.UNAVAILABLE: ("state-7", "unavailable", "cross"),
    NodeState.UNREACHABLE: ("state-8", "silent", "diagonal"),
    NodeState.NOT_ELIGIBLE: ("state-0", "no pod wanted", "frame"),
}


def word(state: NodeState) -> str:
    """Return what a legend calls a state."""
    return _STATES[state][1]


def draw_cell(svg: Svg, state: NodeState, x: float, y: float, size: float = SIZE) -> None:
    """Draw the cell of one node."""
    colour, _, shape = _STATES[state]
    svg.stamp(f"{shape}-{size:g}", _shape(shape, size), colour, x, y)


def draw_legend(svg: Svg, x: float, y: float, states: Sequence[NodeState]) -> float:
    """Draw a cell and the word of each state, one after the other; return where they end."""
    for state in states:
        draw_cell(svg, state, x, y - 11, 13)
        svg.text(x + 19, y, word(state), "quiet small")
        x += 36 + len(word(state)) * 6.8
    return x


def _shape(name: str, size: float) -> str:
    edge = round(size / 12, 1) + 0.6  # how thick a frame is
    frame = _box(0, 0, size) + _box(edge, edge, size - 2 * edge, corner=1)
    match name:
        case "small":
            return _box(size * 0.2, size * 0.2, size * 0.6)
        case "slit":
            width, height = size * 0.56, size * 0.16
            return _box(0, 0, size) + _bar((size - width) / 2, (size - height) / 2, width, height)
        case "lower":
            low = size / 2
            hollow = _bar(edge, edge, size - 2 * edge, low - edge)
            return _box(0, 0, size) + hollow
        case "inner":
            return frame + _box(size * 0.3, size * 0.3, size * 0.4, corner=1)
        case "notch":
            return _box(0, 0, size) + _box(size * 0.33, size * 0.33, size * 0.34, corner=0)
        case "cross":
            return _cross(size)
        case "diagonal":
            end, corner = size - edge, edge * 2.4
            hollow = f"M{edge:.1f} {edge:.1f}H{end - corner + edge:.1f}L{edge:.1f} {end:.1f}Z"
            return _box(0, 0, size) + hollow
        case "frame":
            return frame
    return _box(0, 0, size)


def _box(x: float, y: float, side: float, *, corner: float = 3.0) -> str:
    """A square with round corners."""
    r = min(corner, side / 5)
    if not r:
        return _bar(x, y, side, side)
    s = side - 2 * r
    arc = f"a{r:.1f} {r:.1f} 0 0 1"
    return (
        f"M{x + r:.1f} {y:.1f}h{s:.1f}{arc} {r:.1f} {r:.1f}v{s:.1f}{arc} {-r:.1f} {r:.1f}"
        f"h{-s:.1f}{arc} {-r:.1f} {-r:.1f}v{-s:.1f}{arc} {r:.1f} {-r:.1f}Z"
    )


def _bar(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}Z"


def _cross(size: float) -> str:
    """A saltire: two bars from corner to corner, as one outline."""
    c, t = size / 2, size * 0.14
    a = size
    points = (
        *((0, t), (t, 0), (c, c - t), (a - t, 0), (a, t), (c + t, c)),
        *((a, a - t), (a - t, a), (c, c + t), (t, a), (0, a - t), (c - t, c)),
    )
    return f"M{'L'.join(f'{x:.1f} {y:.1f}' for x, y in points)}Z"
