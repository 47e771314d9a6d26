"""The page that plays a forecast: the figures on it, and the file that it is written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everynode.api.versions import decode_daemonset
from everynode.cli.terminal.text import format_count, format_duration
from everynode.dashboard.bundle import bundle
from everynode.dashboard.export import export
from everynode.errors import UserError
from everynode.forecast.forecast import Forecast, ForecastRequest
from everynode.forecast.recording import Recording

Object = dict[str, Any]


def write_page(
    path: Path, question: ForecastRequest, answer: Forecast, recording: Recording, *, summary: str
) -> None:
    """Write the page of a forecast; raises UserError if the file cannot be written."""
    facts = [
        {"title": title, "value": value, "note": note}
        for title, value, note in _facts(question, answer)
    ]
    ds = decode_daemonset(question.new)
    page = bundle(export(answer, recording, ds, facts=facts, summary=summary))
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--html {path}: {error.strerror}: choose another file") from None


def _facts(question: ForecastRequest, answer: Forecast) -> Iterator[tuple[str, str, str]]:
    timing = question.timing
    paces = (
        f"{format_duration(timing.pull)} to pull, {format_duration(timing.start)} to start, "
        f"{format_duration(timing.stop)} to stop"
    )
    yield "Takes", format_duration(answer.seconds), paces
    yield "Most down at once", f"{answer.most_down:,}", f"on {format_count(answer.nodes, 'node')}"
    if answer.updated and answer.seconds:
        yield "Pace", f"{answer.updated * 60 / answer.seconds:,.1f}", "nodes a minute"
