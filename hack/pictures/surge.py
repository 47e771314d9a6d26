"""Surge as a timeline: the pods of six nodes, updated with maxUnavailable and with maxSurge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from everynode.pictures.svg import MARGIN, WIDTH, Svg, timecode
from everynode.sim.plans.builders import set_image
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan, Timing
from hack.pictures.played import PodLife, play, pod_lives

_NODES: Final = 6
_UPDATE: Final = 100.0
_LONGEST: Final = 120.0  # seconds that are shown
_LEFT: Final = 104.0
_RIGHT: Final = WIDTH - MARGIN - 8
_LANE: Final = 9.0  # height of a pod
_ROW: Final = 29.0  # of a node


def draw() -> str:
    """Return the picture."""
    svg = Svg(
        "The same update with maxUnavailable and with maxSurge, as a timeline of the pods",
        "Six nodes, two at a time. With maxUnavailable 2 the old pod of a node stops before the "
        "new one starts: the node is down in between. With maxSurge 2 the new pod starts beside "
        "the old one, which stops when the new one is available: no node is ever down.",
    )
    svg.text(MARGIN, 38, "The pods of six nodes, two at a time", "text heading")
    top = 74.0
    for title, caption, rolling in (
        (
            "maxUnavailable: 2",
            "stop, then start: every node is down for a while",
            {"maxUnavailable": 2},
        ),
        (
            "maxSurge: 2",
            "start, then stop: no node is ever down",
            {"maxSurge": 2, "maxUnavailable": 0},
        ),
    ):
        svg.text(MARGIN, top, title, "text head")
        svg.text(MARGIN, top + 20, caption, "quiet small")
        _draw_pods(svg, _lives(rolling), top + 36)
        top += 36 + _NODES * _ROW + 58
    _draw_legend(svg, top + 6)
    return svg.render(top + 26)


def _lives(rolling: dict[str, Any]) -> list[PodLife]:
    plan = Plan(
        seed=1,
        nodes=_NODES,
        manifests=(daemonset(rolling=rolling),),
        timing=Timing(pull=5.0, start=15.0, stop=10.0),
        actions=(set_image(_UPDATE),),
        quiet_at=_UPDATE + _LONGEST,
    )
    return pod_lives(play(plan)[1], new_from=_UPDATE)


def _draw_pods(svg: Svg, lives: Sequence[PodLife], top: float) -> None:
    names = sorted({life.node for life in lives}, reverse=True)
    for number, name in enumerate(names):
        y = top + number * _ROW
        svg.text(MARGIN, y + 14, name, "quiet small")
        svg.line(_LEFT, y + _ROW - 4.5, _RIGHT, y + _ROW - 4.5, "line-line")
        own = [life for life in lives if life.node == name]
        for begin, gone, end in _gaps(own):
            svg.rect(_x(begin), y - 3, _x(end) - _x(begin), 2 * _LANE + 8, "area state-6", round=3)
            svg.text((_x(gone) + _x(end)) / 2, y + _LANE, "down", "text small middle")
        for life in own:
            _draw_pod(svg, life, y + (_LANE + 2 if life.new else 0))
    bottom = top + len(names) * _ROW
    for seconds in range(0, int(_LONGEST) + 1, 30):
        x = _x(_UPDATE + seconds)
        svg.line(x, bottom, x, bottom + 5, "quiet-line")
        svg.text(x, bottom + 20, timecode(seconds), "quiet small middle")


def _draw_pod(svg: Svg, life: PodLife, y: float) -> None:
    """Draw a pod: hollow while it starts, full while it is Ready, half as high while it stops."""
    last = _UPDATE + _LONGEST
    created, ready = max(life.created, _UPDATE), max(min(life.ready, last), _UPDATE)
    stopping, gone = min(life.stopping, last), min(life.gone, last)
    colour = "state-5" if life.new else "state-1"
    if ready > created:
        width = _x(ready) - _x(created) - 1.5
        svg.rect(_x(created) + 0.7, y + 0.7, width, _LANE - 1.4, "ring state-4-line", round=2)
    svg.rect(_x(ready), y, _x(stopping) - _x(ready), _LANE, colour, round=2)
    if gone > stopping:
        svg.rect(_x(stopping), y + _LANE / 2, _x(gone) - _x(stopping), _LANE / 2, "state-3")


def _gaps(lives: Sequence[PodLife]) -> list[tuple[float, float, float]]:
    """The times from which, and to which, no pod is available; between them the old one is gone."""
    old, new = sorted(lives, key=lambda life: life.created)
    return [(old.stopping, old.gone, new.ready)] if new.ready > old.stopping else []


def _draw_legend(svg: Svg, y: float) -> None:
    svg.line(MARGIN, y - 28, WIDTH - MARGIN, y - 28, "line-line")
    x = float(MARGIN)
    for look, words in (
        ("state-1", "old pod"),
        ("state-3", "it stops"),
        ("ring state-4-line", "new pod starts"),
        ("state-5", "new pod is available"),
    ):
        half = _LANE / 2 if look == "state-3" else 0
        svg.rect(x, y - 9 + half, 22, _LANE - half, look, round=0 if half else 2)
        svg.text(x + 29, y, words, "quiet small")
        x += 42 + len(words) * 6.5


def _x(time: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (time - _UPDATE) / _LONGEST
