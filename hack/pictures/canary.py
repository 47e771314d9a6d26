"""Canaries: which nodes a selector, a partition and both together let through."""

from __future__ import annotations

from typing import Any, Final

from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.forecast.recording import NodeState
from everynode.pictures.cells import draw_legend
from everynode.pictures.svg import MARGIN, WIDTH, Svg
from everynode.sim.plans.builders import at, set_image, set_rolling_update
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from hack.pictures.grids import Panel, draw_panels, draw_row
from hack.pictures.played import Snapshot, play

_LABEL: Final = ("nodeType", "canary")
_SELECTOR: Final = {"matchLabels": dict((_LABEL,))}
_NODES: Final = 120  # of the combinations, as in the table of the page
_FEW: Final = 6  # of the tutorials' cluster
_COMBINATIONS: Final = ((0, 100), (30, 100), (10, 115), (10, 0))  # selected, partition


def draw_combined() -> str:
    """Return selector and partition together, as the table of the page has them."""
    panels = [_combination(selected, partition) for selected, partition in _COMBINATIONS]
    described = " ".join(f"{each.title}: {each.caption}." for each in panels)
    svg = Svg("Which nodes are updated with a selector and a partition", described)
    svg.text(MARGIN, 38, f"{_NODES} nodes, a selector and a partition", "text heading")
    bottom = draw_panels(svg, panels, 60, columns=15)
    return _finish(svg, bottom, (NodeState.HELD, NodeState.UPDATED), ring="selected")


def _combination(selected: int, partition: int) -> Panel:
    rolling: dict[str, Any] = {"maxUnavailable": "50%", "partition": partition}
    labels: tuple[tuple[str, str, int], ...] = ()
    if selected:
        rolling["selector"] = _SELECTOR
        labels = ((*_LABEL, selected),)
    made = daemonset(rolling=rolling)
    question = ForecastRequest(
        old=with_previous_images(made), new=made, nodes=_NODES, labels=labels
    )
    answer, recording = record(question)
    states = dict(recording.start)
    for change in recording.changes:
        states[change.node] = change.state
    key, value = _LABEL
    marked = {name for name, each in recording.labels.items() if each.get(key) == value}
    who = f"{selected} selected" if selected else "no selector"
    return Panel(
        f"{who}, partition: {partition}",
        f"{answer.updated} updated" + (f" of the {selected}" if selected > answer.updated else ""),
        states,
        frozenset(marked),
    )


def draw_by_partition() -> str:
    """Return what lowering the partition does, on the cluster of the tutorials."""
    plan = _plan(
        {"partition": 4, "maxUnavailable": 2},
        set_image(20),
        set_rolling_update(60, partition="50%"),
        set_rolling_update(100, partition=0),
    )
    two, half, everything = play(plan, (50, 90, 130))[0]
    rows = (
        _row("partition: 4", two),
        _row("partition: 50%", half),
        _row("partition: 0", everything),
    )
    return _draw_rows("A canary by partition, in three steps", rows)


def draw_by_selector() -> str:
    """Return what a selector does, on the cluster of the tutorials."""
    key, value = _LABEL
    labelled = [
        at(time, "label-node", node=name, labels={key: value})
        for time, name in ((5, "node-0002"), (6, "node-0005"), (60, "node-0001"))
    ]
    plan = _plan(
        {"selector": _SELECTOR, "maxUnavailable": 2},
        *labelled,
        set_image(20),
        set_rolling_update(100, selector=None),
    )
    chosen, wider, everything = play(plan, (50, 90, 130))[0]
    rows = (
        _row("two are selected", chosen, ring=True),
        _row("three are selected", wider, ring=True),
        _row("no selector", everything),
    )
    return _draw_rows("A canary by selector, in three steps", rows, ring="selected")


def _plan(rolling: dict[str, Any], *actions: Any) -> Plan:
    return Plan(
        seed=1,
        nodes=_FEW,
        manifests=(daemonset(rolling=rolling),),
        actions=actions,
        quiet_at=140.0,
    )


def _row(title: str, snapshot: Snapshot, *, ring: bool = False) -> Panel:
    updated, held = snapshot.count(NodeState.UPDATED), snapshot.count(NodeState.HELD)
    assert updated + held == _FEW
    caption = f"{updated} updated, {held} held" if held else f"all {updated} updated"
    marked = snapshot.selected if ring else frozenset()
    return Panel(title, caption, snapshot.states, marked)


def _draw_rows(title: str, rows: tuple[Panel, ...], *, ring: str = "") -> str:
    described = " ".join(f"{each.title}: {each.caption}." for each in rows)
    svg = Svg(title, f"Six nodes, node-0001 to node-0006 from left to right. {described}")
    svg.text(MARGIN, 38, title, "text heading")
    bottom = 38.0
    for number, each in enumerate(rows):
        bottom = draw_row(svg, each, bottom + (26 if not number else 14), 44)
    return _finish(svg, bottom - 6, (NodeState.HELD, NodeState.UPDATED), ring=ring)


def _finish(svg: Svg, bottom: float, states: tuple[NodeState, ...], *, ring: str) -> str:
    svg.line(MARGIN, bottom + 16, WIDTH - MARGIN, bottom + 16, "line-line")
    x = draw_legend(svg, MARGIN, bottom + 42, states)
    if ring:
        svg.rect(x, bottom + 31, 13, 13, "ring text-line", round=3)
        svg.text(x + 19, bottom + 42, ring, "quiet small")
    return svg.render(bottom + 62)
