from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from everynode.cli.simulate import command
from tests.support.paths import ROOT

MANIFEST = str(ROOT / "examples" / "20-forecast.yaml")


def test_the_page_is_written_beside_the_printed_forecast(tmp_path: Path) -> None:
    page = tmp_path / "forecast.html"
    done = CliRunner().invoke(command, ["-f", MANIFEST, "--nodes", "20", "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("probe-agent on 20 nodes")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '"name":"probe-agent"' in text


def test_nodes_that_are_left_alone_are_counted_too(tmp_path: Path) -> None:
    page = tmp_path / "forecast.html"
    options = ["--nodes", "20", "--notready", "2", "--html", str(page)]
    done = CliRunner().invoke(command, ["-f", MANIFEST, *options])
    assert done.exit_code == 0, done.output
    shown = "partition holds 17 nodes back. 2 NotReady nodes are left alone."
    assert shown in page.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "forecast.html"
    done = CliRunner().invoke(command, ["-f", MANIFEST, "--nodes", "2", "--html", str(page)])
    assert done.exit_code != 0
    assert "choose another file" in str(done.exception)


def test_a_page_needs_a_manifest() -> None:
    done = CliRunner().invoke(command, ["--seeds", "1", "--html", "page.html"])
    assert "--html is for forecasts" in str(done.exception or done.output)
