from __future__ import annotations

import re

import pytest

from everynode.forecast.recording import NodeState
from everynode.pictures.cells import draw_cell, draw_legend, word
from everynode.pictures.svg import Svg


@pytest.mark.parametrize("size", [9.0, 18.0])
def test_every_state_has_a_shape_of_its_own_so_that_colour_alone_never_tells(size: float) -> None:
    svg = Svg("a", "b")
    for state in NodeState:
        draw_cell(svg, state, 0, 0, size)
    shapes = re.findall(r'<path [^>]*d="([^"]+)"', svg.render(100))
    assert len(set(shapes)) == len(NodeState)


def test_a_legend_names_what_it_shows() -> None:
    svg = Svg("a", "b")
    draw_legend(svg, 0, 0, (NodeState.HELD, NodeState.UPDATED))
    assert re.findall(r">(held|updated)<", svg.render(100)) == ["held", "updated"]
    assert len({word(state) for state in NodeState}) == len(NodeState)
