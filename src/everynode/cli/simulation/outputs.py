"""Outputs of a forecast: text, JSON, a chart as SVG or a page, on standard output or in a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from everynode.api.validation.lint import unknown_field_findings
from everynode.cli.simulation.comparison import (
    Posed,
    comparison_heading,
    comparison_lines,
    echo_lines,
    parse_questions,
)
from everynode.cli.simulation.forecast import forecast_lines, summary
from everynode.cli.terminal.manifest_files import read_daemonsets
from everynode.cli.terminal.progress import Progress
from everynode.cli.terminal.text import format_count
from everynode.clock import SystemClock
from everynode.errors import UsageError, UserError
from everynode.forecast.answer import Forecast, ForecastError
from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.recording import Recording

Object = dict[str, Any]
_Played = tuple[Forecast, Recording]


def print_forecasts(options: dict[str, Any]) -> None:
    """Play one forecast, or with --compare two, and print them; raises UserError."""
    output = options["output"]
    _check_outputs(options)
    manifests = read_daemonsets(options["files"])
    for finding in (each for manifest in manifests for each in unknown_field_findings(manifest)):
        click.echo(f"warning: {finding.path}: {finding.message}", err=True)
    posed = parse_questions(manifests, options)
    played = [_play(each.question) for each in posed]
    if options["html"] is not None:
        write_output("--html", options["html"], _page(posed, played))
    if options["svg"] is not None:
        write_output("--svg", options["svg"], _chart(posed, played))
    answers = [answer for answer, _ in played]
    match output:
        case "json":
            click.echo(_json(posed, answers))
        case "svg":
            click.echo(_chart(posed, played), nl=False)
        case "html":
            click.echo(_page(posed, played))
        case _ if len(posed) > 1:
            echo_lines(comparison_lines(posed, answers, assumed=len(manifests) == 1))
        case _:
            lines = forecast_lines(posed[0].question, answers[0], assumed=len(manifests) == 1)
            echo_lines(lines)


def _check_outputs(options: dict[str, Any]) -> None:
    output = options["output"]
    if options["compare"] and (output == "html" or options["html"] is not None):
        option = "-o html" if output == "html" else "--html"
        raise UsageError(f"{option} plays one rollout: leave out --compare, or use -o svg")
    if output in ("svg", "html") and sys.stdout.isatty():
        file = f"forecast.{output}"
        raise UsageError(f"-o {output} is for a file: add > {file}, or use --{output} {file}")


def _play(question: ForecastRequest) -> _Played:
    progress = Progress(sys.stderr, SystemClock(), total=question.nodes, what="nodes")

    def show_progress(step: str, done: int) -> None:
        if sys.stderr.isatty():
            progress.show(done, step)

    try:
        return record(question, show_progress)
    except ForecastError as error:
        raise UserError(str(error)) from None
    finally:
        progress.end()


def _json(posed: Sequence[Posed], answers: Sequence[Forecast]) -> str:
    documents: list[Object] = [
        msgspec.to_builtins(each) | {"writesPerPod": round(each.writes_per_pod, 2)}
        for each in answers
    ]
    document: Object = documents[0]
    if len(documents) > 1:
        labelled = zip(posed, documents, strict=True)
        document = {"forecasts": [{"label": each.label} | made for each, made in labelled]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _chart(posed: Sequence[Posed], played: Sequence[_Played]) -> str:
    from everynode.pictures.forecast_chart import Drawn, draw_forecasts

    answers = [answer for answer, _ in played]
    drawn = [
        Drawn(answer, each.label, summary(answer))
        for each, answer in zip(posed, answers, strict=True)
    ]
    if len(posed) > 1:
        return draw_forecasts(comparison_heading(posed, answers), drawn)
    nodes = format_count(posed[0].question.nodes, "node")
    return draw_forecasts(f"{answers[0].name} on {nodes}: a forecast", drawn)


def _page(posed: Sequence[Posed], played: Sequence[_Played]) -> str:
    from everynode.cli.simulation.recording_page import page_of

    return page_of(posed[0].question, *played[0])


def write_output(option: str, path: Path, text: str) -> None:
    """Write a file that an option names; raises UserError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option} {path}: {error.strerror}: choose another file") from None
