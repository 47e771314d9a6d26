"""The page that plays a forecast, with the figures on it."""

from __future__ import annotations

from collections.abc import Iterator

from everynode.api.daemonset import DaemonSet
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
    timing, ds = question.timing, decode_daemonset(question.new)
    paces = (
        f"{format_duration(timing.pull)} to pull, {format_duration(timing.start)} to start, "
        f"{format_duration(timing.stop)} to stop"
    )
    return recording_page(ds, answer, recording, paces=paces)


def recording_page(ds: DaemonSet, answer: Forecast, recording: Recording, *, paces: str) -> str:
    """Return the page that plays a recording; `paces` says how long a pod takes."""
    facts = [
        {"title": title, "value": value, "note": note}
        for title, value, note in _facts(answer, paces)
    ]
    return bundle(export(answer, recording, ds, facts=facts, summary=_outcome(answer)))


def _outcome(answer: Forecast) -> str:
    """How the rollout ends, on all nodes."""
    if not answer.silent or answer.ending == "stopped":
        return summary(answer)
    silent = format_count(len(answer.silent), "NotReady node")
    verb = "is" if len(answer.silent) == 1 else "are"
    return f"{summary(answer)} {silent} {verb} left alone."


def _facts(answer: Forecast, paces: str) -> Iterator[tuple[str, str, str]]:
    yield "Takes", format_duration(answer.seconds), paces
    yield "Most down at once", f"{answer.most_down:,}", f"on {format_count(answer.nodes, 'node')}"
    if answer.updated and answer.seconds:
        yield "Pace", f"{answer.updated * 60 / answer.seconds:,.1f}", "nodes a minute"
