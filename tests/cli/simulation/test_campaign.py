"""Campaigns: the report of broken promises, and the files that are written."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from everynode.cli.simulation.campaign import CampaignOptions, play_all, play_crash_points
from everynode.errors import UserError
from everynode.sim.explore.campaign import Outcome, outcome_of
from everynode.sim.explore.replay import load
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan


def impatient(seed: int) -> list[Outcome]:
    """A world that has too little time for an update that takes a minute on every node."""
    actions = (
        Action("cut-watch", at=5.0),
        Action("set-image", at=8.0, args={"image": "agent:v2"}),
        Action("touch-as-alpha", at=9.0),
    )
    plan = Plan(
        seed,
        nodes=2,
        manifests=(daemonset(min_ready=60),),
        actions=actions,
        quiet_at=10.0,
        patience=20.0,
        name=f"seed {seed}",
    )
    return [outcome_of(plan)]


def test_a_broken_promise_is_reported_shrunk_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        play_all(impatient, [7], CampaignOptions(1, tmp_path), total=1, what="seed", as_json=False)
    assert caught.value.code == 1
    path = tmp_path / "replay-seed-7.json"
    text = capsys.readouterr().out
    assert "BROKEN L1 (the world settles, and stays so)" in text
    assert "seed 7, at " in text
    assert "shrunk from 3 actions on 2 nodes to " in text
    assert f"replay it: everynode simulate --replay {path}" in text
    assert "1 seed: 1 broke a promise" in text
    assert len(load(path).actions) < 3


def test_only_the_first_are_shrunk_and_all_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everynode.cli.simulation.campaign.MAX_SHRUNK", 0)
    monkeypatch.setattr("everynode.cli.simulation.campaign.MAX_FILES", 2)
    with pytest.raises(SystemExit):
        play_all(
            impatient, range(3), CampaignOptions(1, tmp_path), total=3, what="seed", as_json=False
        )
    text = capsys.readouterr().out
    assert "and 1 more, for which no replay file was written" in text
    assert "3 seeds: 3 broke a promise" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "replay-seed-0.json",
        "replay-seed-1.json",
    ]
    assert len(load(tmp_path / "replay-seed-0.json").actions) == 3


def interrupted(seed: int) -> list[Outcome]:
    if seed == 2:
        raise KeyboardInterrupt
    return impatient(seed)


def test_ctrl_c_prints_what_was_found_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        play_all(
            interrupted, range(5), CampaignOptions(1, tmp_path), total=5, what="seed", as_json=False
        )
    assert caught.value.code == 1
    said = capsys.readouterr()
    assert "2 seeds: 2 broke a promise" in said.out
    assert "stopped after 2 of 5 seeds" in said.err


def killed(seed: int) -> list[Outcome]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def test_a_process_that_dies_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="try fewer --jobs"):
        play_all(
            killed, range(2), CampaignOptions(2, tmp_path), total=2, what="seed", as_json=False
        )


def test_a_plan_that_breaks_by_itself_has_no_crash_points(tmp_path: Path) -> None:
    plan = impatient(1)[0].plan
    assert plan is not None
    with pytest.raises(UserError, match="a promise is broken in seed 1 without a crash"):
        play_crash_points([plan], CampaignOptions(1, tmp_path), stale=False, as_json=False)
