"""The explanation of a node as it is printed: facts, errors, events, and the command that helps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.times import format_time
from everynode.cli.access.cluster import Cluster
from everynode.cli.access.daemonset_names import RESOURCES
from everynode.cli.rollout.documents import node_document
from everynode.cli.rollout.lines import age
from everynode.cli.rollout.marks import colour_of, mark
from everynode.cli.terminal.style import Style
from everynode.inspect.advice import advice
from everynode.inspect.explain import Explanation, explain_node
from everynode.inspect.fleet import FleetView, NodeStanding
from everynode.inspect.pod_trouble import PodEvent, read_errors, read_events
from everynode.inspect.rooms import evaluate_with_rooms
from everynode.inspect.snapshot import SnapshotReader
from everynode.kube.permissions import missing_permissions

_LABEL_WIDTH: Final = 12  # width of the words on the left
_INDENT: Final = "  "
_NOTHING_TO_EXPLAIN: Final = (NodeStanding.UPDATED, NodeStanding.NOT_ELIGIBLE)


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is printed about a node in one rollout."""

    fleet: FleetView
    explanation: Explanation
    errors: tuple[str, ...] = ()
    events: tuple[PodEvent, ...] = ()
    commands: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


async def read_reports(
    cluster: Cluster, sets: Sequence[DaemonSet], node: str, known_commands: Sequence[str]
) -> list[NodeReport]:
    """Return the reports on a node, one per DaemonSet; none if no such node exists.

    Raises UserError if there may be one that the reader has no right to see.
    """
    reader = SnapshotReader(cluster.client)
    reports = []
    unseen: list[str] = []
    for ds in sets:
        snapshot, now = await reader.read(ds), cluster.clock.now()
        evaluation = await evaluate_with_rooms(cluster.client, snapshot, now)
        found = explain_node(evaluation, node, cluster.clock.now())
        if found is not None:
            report = await _read_report(cluster, evaluation.fleet, found, known_commands)
            missing = (*evaluation.fleet.missing, *report.missing)
            reports.append(msgspec.structs.replace(report, missing=missing))
        elif snapshot.nodes is None:
            unseen += evaluation.fleet.missing
    if unseen and not reports:
        raise missing_permissions(list(dict.fromkeys(unseen)))
    return reports


async def _read_report(
    cluster: Cluster, fleet: FleetView, found: Explanation, known_commands: Sequence[str]
) -> NodeReport:
    row, ds = found.row, fleet.ds
    commands = tuple(advice(ds, row, known_commands, cluster.where(ds.namespace)))
    if row.standing in (*_NOTHING_TO_EXPLAIN, NodeStanding.HELD, NodeStanding.QUEUED):
        return NodeReport(fleet=fleet, explanation=found, commands=commands)
    pod = next((each for each in found.pods if each.name == row.pod), None)
    errors = await read_errors(cluster.client, ds.namespace, pod.name) if pod is not None else []
    # The API server refuses a pod to the DaemonSet; then the event is about the DaemonSet.
    about = pod.uid if pod is not None else ds.uid
    events = await read_events(cluster.client, ds.namespace, about, warnings_only=pod is None)
    return NodeReport(
        fleet=fleet,
        explanation=found,
        errors=tuple(errors),
        events=() if isinstance(events, str) else tuple(events),
        commands=commands,
        missing=(events,) if isinstance(events, str) else (),
    )


def explanation_lines(reports: Sequence[NodeReport], style: Style, now: float) -> list[str]:
    """Return the lines about a node; where there are several rollouts, one line for those done."""
    lines: list[str] = []
    brief = True
    for report in reports:
        row, ds = report.explanation.row, report.fleet.ds
        title = (
            f"{mark(row.standing, style)} {style.paint(row.node, bold=True)} in "
            f"{style.paint(ds.short_name, bold=True)}, namespace {ds.namespace}: "
            f"{style.paint(row.standing.value, colour_of(row.standing), bold=True)}"
        )
        was_brief, brief = brief, len(reports) > 1 and row.standing in _NOTHING_TO_EXPLAIN
        if lines and not (brief and was_brief):
            lines.append("")
        lines.append(title)
        if not brief:
            lines += ["", *(f"{_INDENT}{line}".rstrip() for line in _body(report, style, now))]
    return lines


def _body(report: NodeReport, style: Style, now: float) -> Iterator[str]:
    for fact in report.explanation.facts:
        rule = f" [{fact.rule.upper()}]" if fact.rule else ""
        yield from _entry(fact.word, f"{fact.text}{rule}", style)
    for index, error in enumerate(report.errors):
        yield from _entry("last error" if index == 0 else "", error, style)
    for index, event in enumerate(report.events):
        times = f" (x{event.count})" if event.count > 1 else ""
        text = f"{age(event.last, now)} ago{times} {event.type} {event.reason}: {event.message}"
        yield from _entry("events" if index == 0 else "", text, style)
    if report.commands:
        yield ""
    for index, command in enumerate(report.commands):
        word = "what helps" if index == 0 else ""
        yield f"{style.dim(word)}{' ' * (_LABEL_WIDTH - len(word))}{style.paint(command, 'green')}"


def _entry(word: str, text: str, style: Style) -> Iterator[str]:
    width = max(24, style.width - _LABEL_WIDTH - len(_INDENT))
    lines = textwrap.wrap(style.paint(text), width, break_on_hyphens=False)
    for index, line in enumerate(lines or [""]):
        head = word if index == 0 else ""
        yield f"{style.dim(head)}{' ' * (_LABEL_WIDTH - len(head))}{line}"


def report_document(report: NodeReport) -> dict[str, Any]:
    """Return the report for -o json and -o yaml."""
    ds = report.fleet.ds
    return {
        "apiVersion": RESOURCES[ds.flavour].api_version,
        "kind": "DaemonSet",
        "namespace": ds.namespace,
        "name": ds.name,
        **node_document(report.fleet, report.explanation.row),
        "facts": [
            {"about": fact.word, "text": fact.text, "rule": fact.rule.upper()}
            for fact in report.explanation.facts
        ],
        "errors": list(report.errors),
        "events": [
            {
                "type": event.type,
                "reason": event.reason,
                "message": event.message,
                "count": event.count,
                "last": None if event.last is None else format_time(event.last),
            }
            for event in report.events
        ],
        "commands": list(report.commands),
    }
