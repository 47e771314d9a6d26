"""The picture of one rollout: bar, nodes by zone, budget, pace, and what nodes wait for."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from everynode.cli.rollout.lines import age, permission_lines, revision_text
from everynode.cli.rollout.marks import STATE_COLOURS, colour_of, mark
from everynode.cli.terminal.style import Style, cut_line
from everynode.cli.terminal.table import shorten
from everynode.cli.terminal.text import format_count, format_duration
from everynode.inspect.fleet import FleetView, NodeRow, NodeStanding, RolloutState

ZONE: Final = "topology.kubernetes.io/zone"
_INDENT: Final = "  "
_BAR: Final = 30
_LABEL: Final = 11  # width of the words on the left
_MAX_MARKS: Final = 600  # beyond this a bar stands for the nodes of a group
_OTHER_LINES: Final = 15  # of a picture, beside the nodes
_MAX_GROUPS: Final = 24
_MAX_NAMED: Final = 3  # nodes that are named for a reason, unless all are asked for
_ORDER: Final = tuple(NodeStanding)
_Draw = Callable[[Sequence[NodeRow], Style, int], Iterator[str]]
_EXPLANATIONS: Final = {
    RolloutState.WAITING: "nothing moves at the moment, and nodes wait for something",
    RolloutState.STALLED: "nothing moves until what nodes wait for has changed",
    RolloutState.PAUSED: "the update is paused; nodes stay as they are until it is resumed",
    RolloutState.HELD: "done as far as partition and selector go; the others keep their revision",
    RolloutState.ALL_BUT_SILENT: "done but for nodes whose kubelet does not report",
    RolloutState.ON_DELETE: "OnDelete: a node is updated when its pod is deleted",
    RolloutState.UNOBSERVED: "the controller has not seen the newest spec; does it run?",
}


def fleet_picture(
    fleet: FleetView,
    style: Style,
    now: float,
    *,
    group_by: str = ZONE,
    all_names: bool = False,
    where: str = "",
) -> list[str]:
    """Return the lines of the picture; `where` are the options of the command that helps."""
    lines = [*_title(fleet, style, now), ""]
    lines += [f"{_INDENT}{_bar(fleet, style)}", ""]
    if fleet.rows:
        lines += [f"{_INDENT}{line}" for line in _groups(fleet, style, group_by)]
        lines += ["", *_legend(fleet, style), ""]
    lines += [f"{_INDENT}{line}" for line in _facts(fleet, style, all_names=all_names)]
    lines += _closing(fleet, style, where)
    return lines


def one_line(fleet: FleetView) -> str:
    """Return how a rollout stands in one line, for output that is not a terminal."""
    counts = fleet.counts
    numbers = {
        "updating": counts.updating,
        "waiting": counts.waiting,
        "queued": counts.queued,
        "held": counts.held,
    }
    parts = [f"{counts.updated} of {counts.desired} updated", f"{counts.available} available"]
    parts += [f"{number} {word}" for word, number in numbers.items() if number]
    parts += [f"{len(names)} {code}" for code, names in fleet.waiting.items()]
    return f"{fleet.ds.short_name} {fleet.state.value}: {', '.join(parts)}"


def _title(fleet: FleetView, style: Style, now: float) -> list[str]:
    """Return one line, or two where the terminal is too narrow for the images beside the rest."""
    name = style.paint(fleet.ds.short_name, bold=True)
    state = style.paint(fleet.state.value, STATE_COLOURS[fleet.state], bold=True)
    since = age(fleet.started, now)
    if fleet.started is not None:
        state += f" for {since}" if fleet.state is RolloutState.COMPLETE else f", begun {since} ago"
    parts = [
        f"{name} {state}",
        f"namespace {fleet.ds.namespace}",
        f"revision {revision_text(fleet, fleet.target)}",
    ]
    title, images = " · ".join(parts), ", ".join(fleet.images)
    if not images:
        return [title]
    whole = f"{title} · {images}"
    if style.is_terminal and cut_line(whole, style.width) != whole:
        return [title, f"{_INDENT}{images}"]
    return [whole]


def _bar(fleet: FleetView, style: Style) -> str:
    counts = fleet.counts
    full = _BAR * counts.updated // max(1, counts.desired)
    done, rest = ("━", "━") if style.signs else ("#", "-")
    if style.signs and not style.coloured:
        rest = "░"
    bar = style.paint(done * full, "green") + style.paint(rest * (_BAR - full), "bright_black")
    return (
        f"{bar}  {counts.updated:,} of {format_count(counts.desired, 'node')} updated, "
        f"{counts.available:,} available"
    )


# --- The nodes ---------------------------------------------------------------------------------


def _groups(fleet: FleetView, style: Style, group_by: str) -> list[str]:
    groups: dict[str, list[NodeRow]] = {}
    for row in fleet.rows:
        groups.setdefault(row.labels.get(group_by, ""), []).append(row)
    names = sorted(groups, key=lambda name: (not name, name))
    shown = {name: groups[name] for name in names[:_MAX_GROUPS]}
    lines = list(_draw(shown, _marks, style)) if len(fleet.rows) <= _MAX_MARKS else []
    # What does not fit onto the screen would hide what is said below the nodes.
    if not lines or (style.is_terminal and len(lines) > max(2, style.height - _OTHER_LINES)):
        lines = list(_draw(shown, _share, style))
    if len(names) > _MAX_GROUPS:
        lines.append(f"… and {len(names) - _MAX_GROUPS} more groups")
    return lines


def _draw(groups: Mapping[str, Sequence[NodeRow]], draw: _Draw, style: Style) -> Iterator[str]:
    """Yield the lines of all groups, the first of each with its name."""
    width = max(len(name) for name in groups)
    for name, rows in groups.items():
        title = f"{name or '-':<{width}}  " if width else ""
        for line in draw(rows, style, style.width - len(_INDENT) - len(title)):
            yield f"{title}{line}"
            title = " " * len(title)


def _marks(rows: Sequence[NodeRow], style: Style, width: int) -> Iterator[str]:
    space = " " if style.is_terminal else ""
    most = max(1, min(50, (width + len(space)) // (1 + len(space))))
    marks = [mark(row.standing, style) for row in rows]
    for start in range(0, len(marks), most):
        yield space.join(marks[start : start + most])


def _share(rows: Sequence[NodeRow], style: Style, width: int) -> Iterator[str]:
    """A bar whose parts are the shares of the standings, and the numbers beside it."""
    counts = Counter(row.standing for row in rows)
    cells = _cells(counts, _BAR)
    bar = "".join(
        style.paint("█" * cells[each], colour_of(each))
        if style.coloured
        else mark(each, style) * cells[each]
        for each in _ORDER
    )
    numbers = ", ".join(f"{counts[each]:,} {each.value}" for each in _ORDER if counts[each])
    yield f"{bar}  {shorten(numbers, max(10, width - _BAR - 2))}"


def _cells(counts: Mapping[NodeStanding, int], width: int) -> dict[NodeStanding, int]:
    """Divide a width by shares; what exists has at least one cell."""
    total = sum(counts.values())
    cells = dict.fromkeys(_ORDER, 0)
    for each in _ORDER:
        if counts[each]:
            cells[each] = max(1, counts[each] * width // total)
    largest = max(_ORDER, key=lambda each: cells[each])
    cells[largest] += width - sum(cells.values())
    return cells


def _legend(fleet: FleetView, style: Style) -> list[str]:
    counts = Counter(row.standing for row in fleet.rows)
    parts = [
        (f"{mark(each, style)} {counts[each]:,} {each.value}", len(f"x {counts[each]:,} {each}"))
        for each in _ORDER
        if counts[each]
    ]
    lines, room = [""], 0
    for text, length in parts:
        if lines[-1] and room + length + 3 > style.width - len(_INDENT):
            lines.append("")
        gap = "   " if lines[-1] else ""
        room = len(gap) + length + (room if lines[-1] else 0)
        lines[-1] += gap + text
    return [f"{_INDENT}{line}" for line in lines]


# --- The facts ---------------------------------------------------------------------------------


def _facts(fleet: FleetView, style: Style, *, all_names: bool) -> list[str]:
    budget = fleet.budget
    what = "with two pods" if budget.field == "maxSurge" else "down"
    facts = [
        (
            "budget",
            f"{budget.used} of {budget.promised} {what} ({budget.field}: {budget.written})",
        )
    ]
    if fleet.per_minute is not None and fleet.state is RolloutState.PROGRESSING:
        left = fleet.seconds_left
        to_go = f", about {format_duration(round(left))} left" if left is not None else ""
        facts.append(("pace", f"{_number(fleet.per_minute)} nodes a minute{to_go}"))
    if fleet.refusal:
        text = f"no pod is taken, for the API server would refuse the next: {fleet.refusal}"
        facts.append(("refused", text))
    if fleet.faults:
        facts.append(("faulty", fleet.faults))
    for index, (code, names) in enumerate(fleet.waiting.items()):
        shown = names if all_names else names[:_MAX_NAMED]
        more = "" if len(shown) == len(names) else f", … ({len(names) - len(shown)} more)"
        text = f"{len(names)} {code}: {', '.join(shown)}{more}"
        facts.append(("waiting" if index == 0 else "", text))
    lines = []
    for word, text in facts:
        room = max(20, style.width - _LABEL - len(_INDENT))
        wrapped = textwrap.wrap(
            style.paint(text), room, break_long_words=False, break_on_hyphens=False
        )
        for index, line in enumerate(wrapped):
            head = word if index == 0 else ""
            lines.append(f"{style.dim(head)}{' ' * (_LABEL - len(head))}{line}")
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _closing(fleet: FleetView, style: Style, where: str) -> list[str]:
    lines = []
    if fleet.state in _EXPLANATIONS:
        lines += ["", f"{_INDENT}{fleet.state.value}: {_EXPLANATIONS[fleet.state]}"]
    command = _next_command(fleet)
    if command:
        lines.append(f"{_INDENT}next: everynode {command}{where}")
    lines += [style.paint(line, "yellow") for line in permission_lines(fleet.missing)]
    return lines


def _next_command(fleet: FleetView) -> str:
    """Return the command that says more, or lets the update go on; empty if there is none."""
    name = fleet.ds.short_name
    first = next((names[0] for names in fleet.waiting.values()), None)
    if first is not None:
        return f"why {first} {name}"
    if fleet.state is RolloutState.PAUSED:
        return f"resume {name}"
    if fleet.state is RolloutState.HELD and fleet.ds.strategy.partition.value:
        return f"partition {name} 0"
    return ""
