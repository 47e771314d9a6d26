"""Forecast: from options to a question, and from the answer to printed lines."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Any

from everynode.api.daemonset import DaemonSet, RollingUpdateType, UpdateStrategyType
from everynode.api.versions import decode_daemonset
from everynode.cli.terminal.chart import MARGIN, WIDTH, draw
from everynode.cli.terminal.text import (
    format_count,
    format_duration,
    parse_duration,
    parse_node_count,
)
from everynode.errors import UsageError, UserError
from everynode.forecast.answer import Forecast, ForecastError
from everynode.forecast.forecast import FailHow, ForecastRequest
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.forecast.rollout import check_versions_of_one
from everynode.sim.plans.plan import Timing

Object = dict[str, Any]
_MAX_NAMES = 5
_FAILURES = {
    FailHow.CRASH: "the new version crashes",
    FailHow.NEVER_READY: "the new version never becomes ready",
    FailHow.PULL: "the new image cannot be pulled",
}
_WRITE_KINDS = ("pods", "status", "events", "others")


def parse_question(manifests: list[Object], options: dict[str, Any]) -> ForecastRequest:
    """Build the question from the manifests and options; raises UserError."""
    if len(manifests) > 2:
        raise UsageError("give one DaemonSet, or two: the one that runs and the one to come")
    old, new = (
        manifests if len(manifests) == 2 else (with_previous_images(manifests[0]), manifests[0])
    )
    try:
        check_versions_of_one(old, new)
    except ForecastError as error:
        raise UserError(str(error)) from None
    nodes: int = options["nodes"]
    timing = Timing(
        pull=_duration(options, "pull"),
        start=_duration(options, "start"),
        stop=_duration(options, "stop"),
    )
    return ForecastRequest(
        old=old,
        new=new,
        nodes=nodes,
        failing=parse_node_count("--fail", options["fail"], nodes),
        fail_how=FailHow(options["fail_how"]),
        not_ready=parse_node_count("--notready", options["notready"], nodes),
        labels=tuple(_label(text, nodes) for text in options["label"]),
        timing=timing,
        hook=_duration(options, "hook"),
        seed=options["seed"],
    )


def _duration(options: dict[str, Any], name: str) -> float:
    return parse_duration(f"--{name}", options[name])


def _label(text: str, nodes: int) -> tuple[str, str, int]:
    key, equals, rest = text.partition("=")
    value, _, share = rest.partition(":")
    if not key or not equals:
        raise UsageError(f"--label {text}: give KEY=VALUE, or KEY=VALUE:5 to label five nodes")
    return key, value, parse_node_count("--label", share, nodes) if share else nodes


# --- Text ----------------------------------------------------------------------------------------

Line = tuple[str, dict[str, Any]]


def forecast_lines(question: ForecastRequest, answer: Forecast, *, assumed: bool) -> Iterator[Line]:
    """The lines to print, each with its style for click.secho."""
    ds = decode_daemonset(question.new)
    yield f"{answer.name} on {format_count(question.nodes, 'node')}: a forecast", {"bold": True}
    yield "", {}
    for word, text in (
        *assumptions(question, ds, assumed=assumed),
        ("strategy", strategy_text(ds)),
    ):
        yield f"  {word:<10} {text}", {}
    yield "", {}
    most = max(answer.budget, answer.most_down)
    total = answer.nodes - answer.held
    for line in draw(answer.curve, total=total, most=most, room=chart_room()):
        yield line, {"fg": "green"} if "│" in line else {}
    yield "", {}
    yield summary(answer), {"bold": True, "fg": ending_colour(answer)}
    for word, text in figures(answer):
        yield f"  {word:<10} {text}", {}
    advice = _advice(answer)
    if advice:
        yield "", {}
        yield advice, {}


def ending_colour(answer: Forecast) -> str:
    """The colour of how it ends."""
    return {"complete": "green", "stopped": "red", "endless": "red"}.get(answer.ending, "yellow")


def chart_room() -> int:
    """How many columns a chart may take."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else MARGIN + WIDTH


def assumptions(
    question: ForecastRequest, ds: DaemonSet, *, assumed: bool
) -> Iterator[tuple[str, str]]:
    """What is taken for granted, as words and texts; `assumed`: the version before is made up."""
    timing = question.timing
    if assumed:
        yield "assumed", "all nodes run the same already, with other images"
    yield (
        "" if assumed else "assumed",
        (
            f"a node takes {format_duration(timing.pull)} to pull, "
            f"{format_duration(timing.start)} to start, {format_duration(timing.stop)} to stop"
        ),
    )
    if ds.pre_delete is not None:
        yield "", f"the preDelete hook lets a pod go after {format_duration(question.hook)}"
    if question.not_ready:
        yield "", f"{format_count(question.not_ready, 'node')} NotReady from the start"
    if question.failing:
        how = _FAILURES[question.fail_how]
        yield "", f"on {format_count(question.failing, 'node')} {how}"


def strategy_text(ds: DaemonSet) -> str:
    """The update strategy in one line."""
    strategy = ds.strategy
    if strategy.type is UpdateStrategyType.ON_DELETE:
        return "OnDelete"
    in_place = strategy.rolling is RollingUpdateType.IN_PLACE
    surging = strategy.max_surge.value > 0
    parts = ["InPlaceIfPossible" if in_place else "RollingUpdate"]
    parts.append(
        f"maxSurge {strategy.max_surge}"
        if surging
        else f"maxUnavailable {strategy.max_unavailable}"
    )
    if strategy.partition.value:
        parts.append(f"partition {strategy.partition}")
    if strategy.selector is not None:
        parts.append("a selector")
    if strategy.paused:
        parts.append("paused")
    if ds.min_ready_seconds:
        parts.append(f"minReadySeconds {ds.min_ready_seconds}")
    return ", ".join(parts)


def summary(answer: Forecast) -> str:
    """One sentence: how the rollout ends, when, and on how many nodes."""
    after = f"after {format_duration(answer.seconds)}" if answer.seconds else "from the start"
    reached = f"{answer.updated:,} of {format_count(answer.nodes, 'node')}"
    stuck = format_count(len(answer.stuck), "node")
    budget = "maxSurge" if answer.surging else "maxUnavailable"
    match answer.ending:
        case "complete":
            others = " that can be reached" if answer.silent else ""
            return (
                f"Complete {after}: the new version runs on all {answer.updated:,} nodes{others}."
            )
        case "unchanged":
            return "Nothing changes: both describe the same pods."
        case "held":
            return f"Holds at {reached} {after}: {_hold_reason(answer)}."
        case "incomplete":
            return f"Ends {after} at {reached}: {stuck} did not become ready."
        case "stopped" if len(answer.stuck) >= answer.budget:
            word = "uses" if len(answer.stuck) == 1 else "use"
            return (
                f"Stops {after} at {reached}: {stuck} that did not become ready {word} up {budget}."
            )
        case "stopped" if _is_outage(answer):
            silent = f"{len(answer.silent):,} NotReady nodes"
            return f"Stops {after} at {reached}: {silent} are an outage, and all of them count."
        case "stopped":
            return f"Stops {after} at {reached}: {answer.message}."
    return f"Still not done after {format_duration(answer.seconds)}, at {reached}."


def _is_outage(answer: Forecast) -> bool:
    """Whether the silent nodes are numerous enough to use up the budget (R4)."""
    return len(answer.silent) > max(answer.budget, answer.nodes // 10)


def _hold_reason(answer: Forecast) -> str:
    if answer.paused:
        return "it is paused"
    if answer.on_delete:
        return "with OnDelete a node is updated when its pod is deleted"
    if answer.partition and answer.selector:
        return f"partition and the selector hold {format_count(answer.held, 'node')} back"
    if answer.partition:
        return f"partition holds {format_count(answer.held, 'node')} back"
    return f"the selector leaves out {format_count(answer.held, 'node')}"


def figures(answer: Forecast) -> Iterator[tuple[str, str]]:
    """Yield the figures of a forecast, each with a word for it."""
    promised = 0 if answer.surging else answer.budget
    kept = "" if answer.most_down - answer.removed <= promised else ": BROKEN"
    yield "down", f"at most {answer.most_down:,} at once, promised {promised:,}{kept}"
    if answer.removed:
        lost = format_count(answer.removed, "node")
        yield "removed", f"the pods of {lost} that the new template does not want, without a budget"
    if answer.surging:
        yield "doubled", f"at most {answer.most_doubled:,} at once, promised {answer.budget:,}"
    if answer.per_minute > 0:
        yield "pace", f"{answer.per_minute:,.1f} nodes a minute"
    if answer.stuck:
        yield "stuck", _names(answer.stuck)
    if answer.to_come:
        yield "waiting", f"{format_count(answer.to_come, 'node')} at the old version"
    if answer.held and answer.ending != "held":
        yield "held", f"{format_count(answer.held, 'node')}: {_hold_reason(answer)}"
    if answer.silent:
        yield "NotReady", f"{_names(answer.silent)}: left alone, updated when back"
    moved = answer.updated + len(answer.stuck)
    if moved:
        shares = {kind: answer.writes.get(kind, 0) / moved for kind in _WRITE_KINDS}
        parts = ", ".join(f"{share:.1f} {kind}" for kind, share in shares.items() if share >= 0.05)
        yield "API writes", f"{answer.writes_per_pod:.1f} per pod: {parts}"


def _names(names: tuple[str, ...]) -> str:
    first = ", ".join(names[:_MAX_NAMES])
    return first if len(names) <= _MAX_NAMES else f"{first} and {len(names) - _MAX_NAMES:,} more"


def _advice(answer: Forecast) -> str:
    match answer.ending:
        case "stopped" if _is_outage(answer):
            return "Nothing is taken from the other nodes until most of those are back."
        case "stopped":
            return (
                "All other nodes keep the old version. Mend the new one or go back to the old: "
                "the stuck nodes are taken first."
            )
        case "held" if answer.paused:
            return "Set paused to false to go on."
        case "held" if answer.selector and not answer.updated:
            return "No node has the labels of the selector: give some with --label KEY=VALUE:N."
        case "held" if answer.partition:
            return "Lower partition to go on."
        case "held" if answer.selector:
            return "Widen or remove the selector to go on."
    return ""
