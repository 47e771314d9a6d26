"""The benchmark beside kube-controller-manager, from bench/results/rollout.jsonl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from everynode.pictures.svg import MARGIN, WIDTH, Svg

_RESULTS: Final = Path(__file__).parents[2] / "bench" / "results" / "rollout.jsonl"
_OURS, _PEER = "everynode", "kube-controller-manager"  # with its release behind it
_BAR: Final = 13.0
_LEFT: Final = float(MARGIN)
_ROOM: Final = WIDTH - 2 * MARGIN - 84.0  # of the longest bar; the rest is for its figure
# What is measured: heading, key of a row, unit, digits after the point.
_MEASURES: Final = (
    ("CPU of the controller per updated pod", "cpu_ms", "ms", 1),
    ("Memory of the controller", "peak", "MB", 0),
    ("Time of the rollout", "seconds", "s", 0),
)
_WORKS: Final = ("update, maxUnavailable 10", "update, maxUnavailable 10%")
Row = dict[str, Any]


class Measured(NamedTuple):
    """The newest run of ours beside peers on the largest fleet."""

    commit: str
    day: str
    machine: str
    nodes: int
    rows: dict[str, dict[str, Row]]  # by who and work; ours first, then the newest peer


class Bars(NamedTuple):
    """The same measure of all."""

    title: str
    values: list[float]
    words: list[str]


def draw() -> str:
    """Return the picture."""
    found = newest(_RESULTS.read_text(encoding="utf-8"))
    names = [who.capitalize() if who == _OURS else who for who in found.rows]
    measures = list(_compared(found))
    svg = Svg(
        f"A rolling update of {found.nodes:,} nodes: {' beside '.join(names)}",
        " ".join(_in_words(bars, names) for bars in measures),
    )
    svg.text(MARGIN, 38, f"A rolling update of {found.nodes:,} nodes", "text heading")
    _draw_key(svg, 64, names)
    y = 92.0
    for bars in measures:
        svg.text(_LEFT, y, bars.title, "text small bold")
        top = y + 9
        for number, (value, words) in enumerate(zip(bars.values, bars.words, strict=True)):
            width = max(2.0, _ROOM * value / max(bars.values))
            _draw_bar(svg, _LEFT, top, width, number)
            svg.text(_LEFT + width + 8, top + 11, words, "text small")
            top += _BAR + 4
        y = top + 21
    machine = f"Measured at commit {found.commit}, {found.day}, {found.machine}."
    svg.text(MARGIN, y - 2, machine, "quiet small")
    svg.text(MARGIN, y + 16, "Shorter is better; each group has its own scale.", "quiet small")
    return svg.render(y + 38)


def _draw_key(svg: Svg, y: float, names: Sequence[str]) -> None:
    x = _LEFT
    for number, name in enumerate(names):
        # An older release of the same program needs no more than its number.
        shown = name if number < 2 else name.removeprefix(_PEER).strip()
        _draw_bar(svg, x, y - 11, 22, number)
        svg.text(x + 30, y, shown, "quiet small")
        x += 46 + 7 * len(shown)


def _draw_bar(svg: Svg, x: float, y: float, width: float, number: int) -> None:
    """Ours is filled, the newest peer has a thick outline, an older one a thin one."""
    svg.rect(x, y, width, _BAR, "state-1" if number else "state-5", round=3)
    edge = (0.0, 3.0, 1.0)[number]
    if edge and width > 12:
        inside = (width - 2 * edge, _BAR - 2 * edge)
        svg.rect(x + edge, y + edge, *inside, "ground", round=3 - edge / 2)


def _compared(found: Measured) -> Iterator[Bars]:
    for heading, key, unit, digits in _MEASURES:
        for work in _WORKS if key != "peak" else _WORKS[-1:]:
            values = [rows[work][key] for rows in found.rows.values()]
            setting = work.removeprefix("update, ")
            title = heading if key == "peak" else f"{heading}, {setting}"
            yield Bars(title, values, [f"{value:.{digits}f} {unit}" for value in values])


def _in_words(bars: Bars, names: Sequence[str]) -> str:
    said = (f"{name} {words}" for name, words in zip(names, bars.words, strict=True))
    return f"{bars.title}: {', '.join(said)}."


def newest(text: str) -> Measured:
    """Return the newest run beside a peer on the largest fleet on which both made the updates."""
    found: list[Measured] = []
    for line in text.splitlines():
        run = msgspec.json.decode(line)
        for nodes in sorted({row["nodes"] for row in run["rows"]}):
            rows: dict[str, dict[str, Row]] = {}
            for row in run["rows"]:
                if row["nodes"] == nodes and row["work"] in _WORKS:
                    rows.setdefault(row["who"], {})[row["work"]] = row
            whole = {who: rows[who] for who in rows if len(rows[who]) == len(_WORKS)}
            peers = sorted((who for who in whole if who.startswith(_PEER)), reverse=True)
            if _OURS in whole and peers:
                machine = f"{run['machine']['processor']}, {run['machine']['cores']} cores"
                commit = run["commit"].removesuffix("-dirty")
                ordered = {who: whole[who] for who in (_OURS, *peers)}
                found.append(Measured(commit, run["at"][:10], machine, nodes, ordered))
    largest = max(each.nodes for each in found)
    return [each for each in found if each.nodes == largest][-1]
