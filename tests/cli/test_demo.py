from __future__ import annotations

import io
import re

import pytest
from click.testing import CliRunner

from everynode.cli.demo import command
from everynode.cli.serving.demo import run_demo


async def test_the_demo_tells_its_story_and_keeps_its_promises() -> None:
    stream = io.StringIO()
    await run_demo(8, 40.0, stream)
    text = stream.getvalue()
    steps = re.split(r"\n(?:\d [A-Z]|Done)", text)
    assert len(steps) == 7
    _, install, canary, rollout, mistake, undo, summary = steps
    assert "8 of 8 nodes run agent:v1" in install
    assert "2 of 8 nodes run agent:v2" in canary
    assert "3 of 8" not in canary
    assert "3 down, promised at most 3; node-0005 is silent" in rollout
    assert "7 of 8 nodes run agent:v2; 0 down, promised at most 3; node-0005 is silent" in rollout
    assert "8 of 8 nodes run agent:v2" in rollout
    assert "ooooo" in mistake
    assert "The DaemonSet says: 3 nodes wait: 3 CrashLoopBackOff (node-0006" in mistake
    assert "8 of 8 nodes run agent:v2" in undo
    assert summary.count("  kept  ") == 5
    assert "BROKEN" not in text


@pytest.mark.parametrize(
    "wrong", [("--nodes", "4"), ("--nodes", "1001"), ("--speed", "0"), ("--speed", "nan")]
)
def test_numbers_that_make_no_sense_are_refused(wrong: tuple[str, str]) -> None:
    assert CliRunner().invoke(command, wrong).exit_code == 2
