"""The chart of docs/forecast.md, drawn by the command that the page shows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from click.testing import CliRunner

from everynode.cli.simulate import command

_EXAMPLE = Path(__file__).parents[2] / "examples" / "20-forecast.yaml"


def draw() -> str:
    """Return the chart of two forecasts, with another maxUnavailable."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "probe-agent.yaml"
        text = _EXAMPLE.read_text(encoding="utf-8").replace("partition: 95%", "partition: 0")
        manifest.write_text(text, encoding="utf-8")
        compare = ("--compare", "maxUnavailable=10%")
        arguments = ["-f", str(manifest), "--nodes", "100", *compare, "-o", "svg"]
        done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout
