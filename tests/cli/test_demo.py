from __future__ import annotations

import io

import pytest
from click.testing import CliRunner

from everynode.cli.demo import command, run_demo


async def test_the_demo_rolls_out_a_canary_and_then_the_rest_and_keeps_its_promises() -> None:
    stream = io.StringIO()
    await run_demo(8, 40.0, stream)
    text = stream.getvalue()
    _, canary, rollout = text.split("\n2 Canary")[0], *text.split("\n2 Canary")[1].split("\n3 ")
    assert "2 of 8 nodes run agent:v2" in canary
    assert "3 of 8" not in canary
    assert "3 down, promised at most 3" in rollout
    assert "8 of 8 nodes run agent:v2" in rollout
    assert text.count("  kept  ") == 3
    assert "BROKEN" not in text


@pytest.mark.parametrize(
    "wrong", [("--nodes", "4"), ("--nodes", "1001"), ("--speed", "0"), ("--speed", "nan")]
)
def test_numbers_that_make_no_sense_are_refused(wrong: tuple[str, str]) -> None:
    assert CliRunner().invoke(command, wrong).exit_code == 2
