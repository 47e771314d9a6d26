"""The text of a plan: summary first, nodes on request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from everynode.cli.planning.answer import Answer
from everynode.cli.simulation.forecast import (
    chart_room,
    ending_colour,
    figures,
    strategy_text,
    summary,
)
from everynode.cli.terminal.chart import draw
from everynode.cli.terminal.style import Style
from everynode.cli.terminal.table import format_table
from everynode.cli.terminal.text import format_count, format_duration
from everynode.forecast.durations import Duration

Line = tuple[str, dict[str, Any]]

_MAX_CHANGES: Final = 6
_MAX_GROUPS: Final = 8
_MAX_NAMES: Final = 5


def plan_lines(answer: Answer) -> Iterator[Line]:
    """Yield the lines of the summary, each with its style for click.secho."""
    yield from _head(answer)
    if answer.plan is not None:
        yield from _forecast(answer)
    else:
        missing = ", ".join(answer.question.objects.missing)
        yield f"No forecast: you lack the permission to {missing}.", {"bold": True, "fg": "yellow"}
    lacking = answer.question.objects.missing if answer.plan is not None else ()
    if answer.warnings or answer.dry_run.unknown or lacking:
        yield "", {}
    for warning in answer.warnings:
        yield f"warning: {warning.about}: {warning.message}", {"fg": "yellow"}
    if lacking:
        text = f"not tried: whether new pods fit: you lack the permission to {', '.join(lacking)}"
        yield text, {"fg": "yellow"}
    if answer.dry_run.unknown:
        yield f"not tried: the dry run of one pod: {answer.dry_run.unknown}", {"fg": "yellow"}


def node_lines(answer: Answer, style: Style) -> list[str]:
    """Return a table of the nodes: first those on which something happens, in their order."""
    plan = answer.plan
    if plan is None:
        return []
    rest = [each for each in plan.nodes if each.order is None]
    rows = [
        [
            str(each.order or ""),
            each.node,
            each.action.value,
            "" if each.begins is None else format_duration(each.begins),
            "never" if each.stuck else _moment(each.available),
            each.reason,
        ]
        for each in (*answer.in_order, *rest)
    ]
    return format_table(["ORDER", "NODE", "ACTION", "BEGINS", "AVAILABLE", "REASON"], rows, style)


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds)


def _head(answer: Answer) -> Iterator[Line]:
    question = answer.question
    nodes = len(question.objects.nodes or ())
    where = f" on {format_count(nodes, 'node')}" if nodes else ""
    yield f"{question.short_name} in {question.namespace}{where}: a plan", {"bold": True}
    yield "", {}
    for word, text in _facts(answer):
        yield f"  {word:<10} {text}", {}
    yield "", {}


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    word = "change"
    for text in _changes(answer):
        yield word, text
        word = ""
    yield "strategy", strategy_text(answer.ds)
    durations = answer.durations
    text = (
        f"a pod takes {format_duration(durations.pull.seconds)} until its containers run, "
        f"{format_duration(durations.start.seconds)} until it is Ready, "
        f"{format_duration(durations.stop.seconds)} to stop"
    )
    yield "assumed", text
    yield "", _sources(durations.pull, durations.start, durations.stop)
    if answer.ds.pre_delete is not None:
        yield "", f"the preDelete hook lets a pod go after {format_duration(answer.hook)}"


def _changes(answer: Answer) -> Iterator[str]:
    if answer.question.live is None:
        yield "a first installation: there is no such DaemonSet yet"
        return
    if not answer.changes:
        yield "none: how the rollout goes on as it is"
    for each in islice(answer.changes, _MAX_CHANGES):
        if not each.after:
            yield f"{each.path}: {each.before} is removed"
        elif not each.before:
            yield f"{each.path}: {each.after} is added"
        else:
            yield f"{each.path}: {each.before} → {each.after}"
    if len(answer.changes) > _MAX_CHANGES:
        yield f"and {format_count(len(answer.changes) - _MAX_CHANGES, 'field')} more"


def _sources(pull: Duration, start: Duration, stop: Duration) -> str:
    """Return where the durations come from, each source once."""
    parts: dict[str, list[str]] = {}
    for word, each in (("to run", pull), ("Ready", start), ("to stop", stop)):
        parts.setdefault(each.source, []).append(word)
    if len(parts) == 1:
        return f"({pull.source})"
    return "(" + "; ".join(f"{', '.join(words)}: {text}" for text, words in parts.items()) + ")"


def _forecast(answer: Answer) -> Iterator[Line]:
    plan = answer.plan
    assert plan is not None
    found = plan.forecast
    most = max(found.budget, found.most_down)
    total = found.nodes - found.held
    chart = list(draw(found.curve, total=total, most=most, room=chart_room()))
    for line in chart:
        yield line, {"fg": "green"} if "│" in line else {}
    if chart:
        yield "", {}
    if answer.dry_run.refusal:
        text = "Does not begin: the API server refuses a pod of the new version, so none is taken."
        yield text, {"bold": True, "fg": "red"}
        yield f"Without that: {summary(found)}", {}
    else:
        unchanged = found.ending == "unchanged"
        text = "Nothing changes on any node." if unchanged else summary(found)
        yield text, {"bold": True, "fg": ending_colour(found)}
    for action, reason, count in islice(answer.groups, _MAX_GROUPS):
        yield f"  {action:<12} {format_count(count, 'node')}: {reason}", {}
    if len(answer.groups) > _MAX_GROUPS:
        left = sum(count for _, _, count in answer.groups[_MAX_GROUPS:])
        yield f"  {'others':<12} {format_count(left, 'node')}: --nodes lists them", {}
    order = [each.node for each in answer.in_order]
    if order:
        first, last = ", ".join(order[:_MAX_NAMES]), order[-1]
        more = f", … {last}" if len(order) > _MAX_NAMES else ""
        yield f"  {'order':<12} {first}{more}", {}
    counts = plan.before.fleet.counts
    down_before = counts.desired - counts.available if answer.question.live is not None else 0
    for word, text in figures(found):
        if word == "down" and down_before > 0:
            text += f"; {format_count(down_before, 'node')} down before it begins"
        if word in ("down", "doubled", "pace", "stuck"):
            yield f"  {word:<12} {text}", {}
