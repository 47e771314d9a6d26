from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from everynode.cli.simulate import command
from tests.support.paths import ROOT

MANIFEST = str(ROOT / "examples" / "20-forecast.yaml")


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["-f", MANIFEST, "--nodes", "20", *arguments])


def printed(*arguments: str) -> str:
    done = typed(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_chart_is_printed_or_written_beside_the_text(tmp_path: Path) -> None:
    chart = printed("-o", "svg")
    assert ElementTree.fromstring(chart).get("role") == "img"
    path = tmp_path / "forecast.svg"
    assert printed("--svg", str(path)).startswith("probe-agent on 20 nodes: a forecast\n")
    assert path.read_text(encoding="utf-8") == chart
    assert printed("-o", "svg") == chart  # every time the same


def test_a_page_is_printed_or_written_beside_the_text(tmp_path: Path) -> None:
    page = printed("-o", "html")
    assert page.startswith("<!doctype html>")
    path = tmp_path / "forecast.html"
    assert printed("--html", str(path)).startswith("probe-agent on 20 nodes: a forecast\n")
    assert path.read_text(encoding="utf-8") == page.removesuffix("\n")


def test_two_forecasts_are_printed_in_every_form_that_holds_two() -> None:
    compare = ("--compare", "maxUnavailable=4")
    assert "two forecasts" in printed(*compare)
    one, other = json.loads(printed(*compare, "-o", "json"))["forecasts"]
    assert (one["budget"], other["budget"]) == (1, 4)
    assert other["label"] == "20-forecast.yaml with maxUnavailable=4"
    assert "promised at most A 1, B 4" in printed(*compare, "-o", "svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--compare", "fail=1", "-o", "html"), "-o html plays one rollout"),
        (("--compare", "fail=1", "--html", "page.html"), "--html plays one rollout"),
        (("--svg", "/nowhere/forecast.svg"), "--svg /nowhere/forecast.svg: No such file"),
    ],
)
def test_what_cannot_be_printed_is_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in str(typed(*arguments).exception)


def test_charts_and_pages_need_a_manifest() -> None:
    done = CliRunner().invoke(command, ["--seeds", "1", "-o", "svg"])
    assert "-o svg is for forecasts" in str(done.exception)
