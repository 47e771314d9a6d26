from __future__ import annotations

import io

import msgspec
import pytest

from everynode.api.daemonset import DaemonSetStatus
from everynode.cli.rollout.picture import fleet_picture, one_line
from everynode.cli.terminal.style import Style
from everynode.inspect.fleet import (
    Budget,
    Counts,
    FleetView,
    NodeRow,
    NodeStanding,
    RolloutState,
)
from tests.cli.terminal.test_table import Terminal
from tests.support.samples import NOW, advanced, template

BUDGET = Budget(field="maxUnavailable", written="10%", promised=100, used=40)


def fleet(*groups: tuple[str, NodeStanding, int]) -> FleetView:
    rows = [
        NodeRow(
            node=f"{zone}-{standing.value}-{i}",
            standing=standing,
            reason="ImagePullBackOff" if standing is NodeStanding.WAITING else "",
            labels={"topology.kubernetes.io/zone": zone},
        )
        for zone, standing, count in groups
        for i in range(count)
    ]
    return FleetView(
        ds=advanced(template()),
        state=RolloutState.PROGRESSING,
        counts=Counts(desired=len(rows), updated=500, available=900, waiting=5),
        budget=BUDGET,
        status=DaemonSetStatus(),
        rows=tuple(rows),
        per_minute=12.345,
        seconds_left=150.0,
        missing=("list nodes",),
    )


MANY = fleet(
    ("a", NodeStanding.UPDATED, 500),
    ("a", NodeStanding.WAITING, 5),
    ("b", NodeStanding.QUEUED, 495),
)


def test_many_nodes_are_drawn_as_shares() -> None:
    lines = fleet_picture(MANY, Style(io.StringIO()), NOW)
    assert "  a  " + "N" * 29 + "!" + "  500 updated, 5 waiting" in lines
    assert "  b  " + "o" * 30 + "  495 queued" in lines
    assert "  pace       12 nodes a minute, about 2 min 30 s left" in lines
    assert any(line.startswith("warning: you lack the permission to list nodes") for line in lines)


def test_nodes_that_do_not_fit_onto_the_screen_are_drawn_as_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    zones = [(zone, NodeStanding.UPDATED, 150) for zone in "abc"]
    for height, drawn in ((60, 12), (24, 3)):
        monkeypatch.setenv("LINES", str(height))
        lines = fleet_picture(fleet(*zones), Style(Terminal()), NOW)
        first = next(i for i, line in enumerate(lines) if line.startswith("  a  "))
        assert lines.index("", first) - first == drawn
        assert len(lines) < height


def test_images_come_below_the_title_where_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = msgspec.structs.replace(MANY, images=("registry.example/agent:1.0",))
    for width, lines in ((100, 1), (70, 2)):
        monkeypatch.setenv("COLUMNS", str(width))
        picture = fleet_picture(shown, Style(Terminal()), NOW)
        assert picture.index("") == lines
        assert picture[lines - 1].endswith("registry.example/agent:1.0")


def test_all_names_are_given_on_request() -> None:
    style = Style(io.StringIO())
    few = "\n".join(fleet_picture(MANY, style, NOW))
    every = "\n".join(fleet_picture(MANY, style, NOW, all_names=True))
    assert "… (2 more)" in few
    assert "a-waiting-4" not in few
    assert "a-waiting-4" in every


def test_nodes_may_be_grouped_by_nothing() -> None:
    small = fleet(("a", NodeStanding.UPDATED, 2), ("b", NodeStanding.HELD, 1))
    assert "  NNh" in fleet_picture(small, Style(io.StringIO()), NOW, group_by="")


def test_one_line_has_the_numbers_that_are_not_zero() -> None:
    assert one_line(MANY) == (
        "ads/agent progressing: 500 of 1000 updated, 900 available, 5 waiting, 5 ImagePullBackOff"
    )


def test_a_paused_rollout_names_the_command_that_resumes_it() -> None:
    paused = msgspec.structs.replace(
        fleet(("a", NodeStanding.HELD, 2)), state=RolloutState.PAUSED, missing=()
    )
    lines = fleet_picture(paused, Style(io.StringIO()), NOW, where=" -n system")
    assert lines[-1] == "  next: everynode resume ads/agent -n system"
