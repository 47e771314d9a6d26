"""Simulations as people type them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from everynode.cli.simulate import command
from everynode.errors import UserError
from everynode.sim.explore.replay import save
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.plans.scenarios import SCENARIOS
from tests.support.paths import ROOT


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def refused(*arguments: str) -> str:
    """The one line that refuses it."""
    error = typed(*arguments).exception
    assert isinstance(error, UserError)
    assert "\n" not in str(error)
    return str(error)


def written(folder: Path, *, name: str = "agent.yaml", image: str = "agent:v1") -> str:
    path = folder / name
    made = daemonset(image=image, rolling={"maxUnavailable": 2})
    path.write_text(yaml.safe_dump(made), encoding="utf-8")
    return str(path)


# --- Many worlds ---------------------------------------------------------------------------------


def test_seeds_are_played_and_summed_up() -> None:
    done = typed("--seeds", "3", "--from", "1", "--jobs", "1")
    assert done.exit_code == 0
    assert "3 seeds: every promise kept" in done.stdout
    assert re.search(r"simulated +\d+ min .* × real time", done.stdout)
    assert re.search(r"commits +[\d,]+, of which [\d,]+ by controllers", done.stdout)
    assert re.search(r"faults +\d+ of \d+ kinds:\n +\d+  F\d+ ", done.stdout)


def test_the_same_seeds_give_the_same_bytes_on_any_number_of_cores() -> None:
    printed = {_bytes(jobs, hash_seed) for jobs, hash_seed in (("1", "0"), ("2", "7"))}
    assert len(printed) == 1
    said = json.loads(printed.pop())
    assert said["runs"] == 5
    assert said["broken"] == []
    assert len(said["trace"]) == 32


def _bytes(jobs: str, hash_seed: str) -> bytes:
    arguments = ["simulate", "--seeds", "5", "--from", "30", "--jobs", jobs, "-o", "json"]
    return subprocess.run(
        [sys.executable, "-m", "everynode", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def test_ctrl_c_ends_it_cleanly() -> None:
    arguments = ["simulate", "--seeds", "200", "--from", "1", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "everynode", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("20 of 200 seeds")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "every promise kept" in out
    assert re.search(r"stopped after \d+ of 200 seeds", err)
    assert "Traceback" not in err


# A program that gets a KeyboardInterrupt after some seconds of its own CPU time.
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGVTALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_VIRTUAL, float(sys.argv.pop(1)))
from everynode.cli.main import main
main()
"""


@pytest.mark.parametrize("seconds", ["2", "2.3", "2.6"])
def test_ctrl_c_during_a_forecast_prints_no_traceback(seconds: str) -> None:
    manifest = str(ROOT / "examples" / "20-forecast.yaml")
    arguments = ["simulate", "-f", manifest, "--nodes", "5000"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, seconds, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (130, "")


# --- One world -----------------------------------------------------------------------------------


def test_scenarios_are_listed() -> None:
    lines = typed("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(SCENARIOS)


def test_a_scenario_is_printed_line_by_line() -> None:
    done = typed("--scenario", "first-creation")
    assert done.exit_code == 0
    assert "add-node at 8.0 s" in done.stdout
    assert re.search(
        r"\d+\.\d{3} +controller-0\.1 +pod agent-\w+ on node-0001 .* created", done.stdout
    )
    assert "Every promise kept" in done.stdout


def test_crash_points_of_a_scenario_are_tried() -> None:
    done = typed("--crash-points", "--scenario", "first-creation", "--jobs", "2")
    assert done.exit_code == 0
    assert re.search(r"\d+ crash points: every promise kept", done.stdout)
    assert re.search(r"\d+  crash-answered", done.stdout)


def impatient() -> Plan:
    update = Action("set-image", at=8.0, args={"image": "agent:v2"})
    slow = daemonset(min_ready=60)
    return Plan(
        1, nodes=1, manifests=(slow,), actions=(update,), quiet_at=10, patience=20, name="slow"
    )


def test_a_replay_file_is_printed_line_by_line_with_the_promise_it_breaks(tmp_path: Path) -> None:
    path = save(impatient(), tmp_path)
    done = typed("--replay", str(path))
    assert done.exit_code == 1
    assert "** BROKEN L1" in done.stdout
    assert "1 promise broken" in done.stdout
    assert "L1 (the world settles, and stays so), at " in done.stdout


def test_a_replay_can_be_read_by_programs(tmp_path: Path) -> None:
    path = save(impatient(), tmp_path)
    done = typed("--replay", str(path), "-o", "json")
    said = json.loads(done.stdout)
    assert done.exit_code == 1
    assert said["result"]["breaches"][0]["promise"] == "L1"
    assert said["plan"]["name"] == "slow"
    assert any("BROKEN" in line for line in said["timeline"])


# --- Forecasts -----------------------------------------------------------------------------------


def test_a_forecast_says_how_it_goes(tmp_path: Path) -> None:
    done = typed("-f", written(tmp_path), "--nodes", "12", "--fail", "1", "--notready", "1")
    assert done.exit_code == 0
    assert "agent on 12 nodes: a forecast" in done.stdout
    assert "Ends after" in done.stdout
    assert "at 10 of 12 nodes: 1 node did not become ready." in done.stdout
    assert "at most 2 at once, promised 2" in done.stdout


def test_a_forecast_from_one_file_to_another(tmp_path: Path) -> None:
    old = written(tmp_path, name="old.yaml")
    new = written(tmp_path, name="new.yaml", image="agent:v2")
    done = typed("-f", old, "-f", new, "--nodes", "4", "-o", "json")
    said = json.loads(done.stdout)
    assert (said["ending"], said["updated"], said["mostDown"]) == ("complete", 4, 2)
    same = json.loads(typed("-f", old, "-f", old, "--nodes", "4", "-o", "json").stdout)
    assert same["ending"] == "unchanged"


# --- What cannot be meant ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nodes", "5"), "--nodes is for forecasts"),
        (("--stale",), "--stale goes with --crash-points"),
        (("--seeds", "3", "--list"), "cannot be combined"),
        (("--seeds", "3", "--scenario", "surge"), "cannot be combined"),
        (("--scenario", "nonsense"), "there is no scenario 'nonsense': first-creation"),
        (("--replay", "/nowhere"), "cannot read /nowhere"),
        (("-f", "/nowhere"), "cannot read /nowhere"),
        (("--seeds", "1", "--save", "/nowhere"), "there is no such folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--fail", "much"), ("--notready", "200"), ("--start", "soon"), ("--label", "x")],
)
def test_values_that_mean_nothing_are_refused_in_one_line(
    option: str, value: str, tmp_path: Path
) -> None:
    assert option in refused("-f", written(tmp_path), option, value)


def test_what_only_the_server_knows_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "typo.yaml"
    path.write_text(yaml.safe_dump(daemonset(rolling={"maxUnavailble": 3})), encoding="utf-8")
    assert 'unknown field "spec.updateStrategy.rollingUpdate.maxUnavailble"' in refused(
        "-f", str(path)
    )
