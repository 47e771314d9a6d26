"""The rollout at the top of the README: a canary, the others, a silent node, the end."""

from __future__ import annotations

from typing import Final

from everynode.forecast.recording import NodeState
from everynode.pictures.cells import draw_legend
from everynode.pictures.svg import MARGIN, WIDTH, Svg, timecode
from everynode.sim.plans.builders import at, set_image, set_rolling_update
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan, Timing
from hack.pictures.grids import Panel, draw_panels
from hack.pictures.played import Snapshot, play

_NODES: Final = 40
_BUDGET: Final = 4
_CANARIES: Final = 4
_SILENT: Final = "node-0017"
# Pods do not all take equally long.
_SLOW: Final = {"node-0033": 1.4, "node-0030": 1.8, "node-0024": 1.3, "node-0021": 1.6}
_UPDATE, _LOST, _RELEASE, _FOUND = 100.0, 150.0, 240.0, 620.0
_TIMES: Final = (_UPDATE + 40, 375.0, 610.0, 700.0)
_DOWN: Final = (NodeState.TAKEN, NodeState.STARTING)


def draw() -> str:
    """Return the picture."""
    canary, under_way, waiting, done = play(_plan(), _TIMES)[0]
    updated = NodeState.UPDATED
    assert canary.count(updated) == _CANARIES
    assert canary.count(NodeState.HELD) == _NODES - _CANARIES
    assert 0 < under_way.count(*_DOWN) <= _BUDGET
    assert waiting.states[_SILENT] is NodeState.UNREACHABLE
    assert waiting.count(updated) == _NODES - 1
    assert done.count(updated) == _NODES
    panels = (
        _panel("1 · A canary", canary, f"{_NODES - _CANARIES} held by partition"),
        _panel("2 · Then the others", under_way, f"{under_way.count(*_DOWN)} down"),
        _panel("3 · One node is silent", waiting, f"{_SILENT} waits"),
        _panel("4 · It comes back", done, "complete"),
    )
    svg = Svg(
        f"A rollout over {_NODES} nodes in four moments",
        f"Every node is a cell. {_describe(panels)} Never more than {_BUDGET} nodes were down for "
        "the update.",
    )
    svg.text(MARGIN, 38, f"One rollout, {_NODES} nodes, maxUnavailable: {_BUDGET}", "text heading")
    bottom = draw_panels(svg, panels, 60, columns=10)
    svg.line(MARGIN, bottom + 16, WIDTH - MARGIN, bottom + 16, "line-line")
    states = (
        *(NodeState.OLD, NodeState.HELD, NodeState.TAKEN),
        *(NodeState.STARTING, NodeState.UPDATED, NodeState.UNREACHABLE),
    )
    draw_legend(svg, MARGIN, bottom + 42, states)
    return svg.render(bottom + 62)


def _plan() -> Plan:
    rolling = {"maxUnavailable": _BUDGET, "partition": _NODES - _CANARIES}
    slow = (at(10, "slow-node", node=name, factor=by) for name, by in sorted(_SLOW.items()))
    return Plan(
        seed=1,
        nodes=_NODES,
        manifests=(daemonset(rolling=rolling),),
        timing=Timing(pull=5.0, start=15.0, stop=10.0),
        actions=(
            *slow,
            set_image(_UPDATE),
            at(_LOST, "lose-node", seconds=_FOUND - _LOST, node=_SILENT),
            set_rolling_update(_RELEASE, partition=0),
        ),
        quiet_at=_FOUND + 1,
    )


def _panel(title: str, snapshot: Snapshot, words: str) -> Panel:
    caption = f"{snapshot.count(NodeState.UPDATED)} updated, {words}"
    return Panel(title, caption, snapshot.states, time=timecode(snapshot.time - _UPDATE))


def _describe(panels: tuple[Panel, ...]) -> str:
    return " ".join(f"{panel.title}: {panel.caption}." for panel in panels)
