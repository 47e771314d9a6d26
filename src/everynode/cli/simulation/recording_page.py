"""The page that plays a forecast, with the figures on it."""

from __future__ import annotations

from collections.abc import Iterator

from everynode.api.versions import decode_daemonset
from everynode.cli.simulation.forecast import summary
from everynode.cli.terminal.text import format_count, format_duration
from everynode.dashboard.bundle import bundle
from everynode.dashboard.export import export
from everynode.forecast.answer import Forecast
from everynode.forecast.forecast import ForecastRequest
from everynode.forecast.recording import Recording


def page_of(question: ForecastRequest, answer: Forecast, recording: Recording) -> str:
    """Return the page of a forecast."""
    facts = [
        {"title": title, "value": value, "note": note}
        for title, value, note in _facts(question, answer)
    ]
    ds = decode_daemonset(question.new)
    return bundle(export(answer, recording, ds, facts=facts, summary=summary(answer)))


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
