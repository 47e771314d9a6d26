"""The benchmark beside kube-controller-manager, from bench/results/rollout.jsonl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from everynode.pictures.svg import MARGIN, WIDTH, Svg

_RESULTS: Final = Path(__file__).parents[2] / "bench" / "results" / "rollout.jsonl"
_OURS, _PEER = "everynode", "kube-controller-manager"
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


class Pair(NamedTuple):
    """The same work of both, in the same run."""

    ours: Row
    peer: Row


class Measured(NamedTuple):
    """The newest run of both on the largest fleet."""

    commit: str
    day: str
    machine: str
    nodes: int
    pairs: dict[str, Pair]  # by work


def draw() -> str:
    """Return the picture."""
    found = newest(_RESULTS.read_text(encoding="utf-8"))
    lines = list(_compared(found))
    svg = Svg(
        f"A rolling update of {found.nodes:,} nodes: Everynode beside {_PEER}",
        " ".join(f"{title}: Everynode {ours}, {_PEER} {peer}." for title, *_, ours, peer in lines),
    )
    svg.text(MARGIN, 38, f"A rolling update of {found.nodes:,} nodes", "text heading")
    _draw_key(svg, 64)
    y = 92.0
    for title, ours, peer, our_words, peer_words in lines:
        svg.text(_LEFT, y, title, "text small bold")
        most = max(ours, peer)
        for number, (value, words, look) in enumerate(
            ((ours, our_words, "state-5"), (peer, peer_words, "state-1"))
        ):
            top = y + 9 + number * (_BAR + 4)
            width = max(2.0, _ROOM * value / most)
            svg.rect(_LEFT, top, width, _BAR, look, round=3)
            if look == "state-1" and width > 12:
                svg.rect(_LEFT + 3, top + 3, width - 6, _BAR - 6, "ground", round=1.5)
            svg.text(_LEFT + width + 8, top + 11, words, "text small")
        y += 64
    machine = f"Measured at commit {found.commit}, {found.day}, {found.machine}."
    svg.text(MARGIN, y - 2, machine, "quiet small")
    svg.text(MARGIN, y + 16, "Shorter is better; each pair has its own scale.", "quiet small")
    return svg.render(y + 38)


def _draw_key(svg: Svg, y: float) -> None:
    svg.rect(_LEFT, y - 11, 22, _BAR, "state-5", round=3)
    svg.text(_LEFT + 30, y, "Everynode", "quiet small")
    svg.rect(_LEFT + 126, y - 11, 22, _BAR, "state-1", round=3)
    svg.rect(_LEFT + 129, y - 8, 16, _BAR - 6, "ground", round=1.5)
    svg.text(_LEFT + 156, y, _PEER, "quiet small")


def _compared(found: Measured) -> Iterator[tuple[str, float, float, str, str]]:
    for heading, key, unit, digits in _MEASURES:
        for work in _WORKS if key != "peak" else _WORKS[-1:]:
            pair = found.pairs[work]
            setting = work.removeprefix("update, ")
            title = heading if key == "peak" else f"{heading}, {setting}"
            ours, peer = pair.ours[key], pair.peer[key]
            yield title, ours, peer, f"{ours:.{digits}f} {unit}", f"{peer:.{digits}f} {unit}"


def newest(text: str) -> Measured:
    """Return the newest run with both programs on the largest fleet that both have updated."""
    found: list[Measured] = []
    for line in text.splitlines():
        run = msgspec.json.decode(line)
        for nodes in sorted({row["nodes"] for row in run["rows"]}):
            rows = {(row["who"], row["work"]): row for row in run["rows"] if row["nodes"] == nodes}
            if all((who, work) in rows for who in (_OURS, _PEER) for work in _WORKS):
                pairs = {work: Pair(rows[_OURS, work], rows[_PEER, work]) for work in _WORKS}
                machine = f"{run['machine']['processor']}, {run['machine']['cores']} cores"
                commit = run["commit"].removesuffix("-dirty")
                found.append(Measured(commit, run["at"][:10], machine, nodes, pairs))
    largest = max(each.nodes for each in found)
    return [each for each in found if each.nodes == largest][-1]
