"""Lines and tables about rollouts, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everynode.api.times import human_duration
from everynode.cli.rollout.marks import STATE_COLOURS, colour_of
from everynode.cli.terminal.style import Style
from everynode.cli.terminal.table import Cell, format_table
from everynode.inspect.fleet import FleetView, NodeRow, NodeStanding, RevisionInfo


def fleet_table(
    fleets: Sequence[FleetView], style: Style, now: float, *, wide: bool, with_namespace: bool
) -> list[str]:
    """Return a line per DaemonSet."""
    head = ["NAME", "DESIRED", "UPDATED", "AVAILABLE", "HELD", "WAITING", "STATE", "AGE"]
    if with_namespace:
        head.insert(0, "NAMESPACE")
    if wide:
        head += ["REVISION", "BUDGET", "WAITS FOR", "IMAGES"]
    rows = [_fleet_row(each, now, wide=wide, with_namespace=with_namespace) for each in fleets]
    return format_table(head, rows, style)


def _fleet_row(
    fleet: FleetView, now: float, *, wide: bool, with_namespace: bool
) -> list[str | Cell]:
    counts = fleet.counts
    short = counts.available < counts.desired
    row: list[str | Cell] = [
        fleet.ds.short_name,
        str(counts.desired),
        str(counts.updated),
        Cell(str(counts.available), "yellow" if short else None),
        str(counts.held),
        Cell(str(counts.waiting), "red" if counts.waiting else None),
        Cell(fleet.state.value, STATE_COLOURS[fleet.state]),
        age(fleet.started, now),
    ]
    if with_namespace:
        row.insert(0, fleet.ds.namespace)
    if wide:
        number = fleet.revision_number(fleet.target)
        waits = ", ".join(f"{len(names)} {code}" for code, names in fleet.waiting.items())
        row += [
            str(number) if number is not None else "-",
            f"{fleet.budget.field} {fleet.budget.written}",
            waits or "-",
            ",".join(fleet.images) or "-",
        ]
    return row


def node_table(
    fleet: FleetView, rows: Iterable[NodeRow], style: Style, now: float, *, wide: bool
) -> list[str]:
    """Return a line per node."""
    head = ["NODE", "STANDING", "REVISION", "POD", "SINCE", "REASON"]
    if wide:
        head[3:3] = ["WANTED", "PLACE"]
        head.append("MESSAGE")
    made = []
    for row in rows:
        cells: list[str | Cell] = [
            row.node,
            Cell(row.standing.value, colour_of(row.standing)),
            revision_text(fleet, row.revision),
            row.pod or "-",
            age(row.since, now),
            Cell(row.reason or "-", "red" if row.standing is NodeStanding.WAITING else None),
        ]
        if wide:
            place = "-" if row.place is None else str(row.place)
            cells[3:3] = [revision_text(fleet, row.wanted), place]
            cells.append(row.message or "-")
        made.append(cells)
    return format_table(head, made, style)


def revision_table(
    revisions: Iterable[RevisionInfo], style: Style, now: float, *, wide: bool
) -> list[str]:
    """Return a line per revision, oldest first; the target is marked."""
    head = ["REVISION", "AGE", "IMAGES", "CHANGE-CAUSE"]
    if wide:
        head[2:2] = ["HASH", "PODS"]
    rows: list[list[str | Cell]] = []
    for each in revisions:
        number = f"{each.number} (target)" if each.target else str(each.number)
        row: list[str | Cell] = [
            Cell(number, "green" if each.target else None),
            age(each.created, now),
            ",".join(each.images) or "-",
            each.cause or "<none>",
        ]
        if wide:
            row[2:2] = [each.hash, str(each.pods)]
        rows.append(row)
    return format_table(head, rows, style)


def revision_text(fleet: FleetView, hash: str) -> str:
    """Return the number of a revision; its hash where the number is not known."""
    number = fleet.revision_number(hash)
    return str(number) if number is not None else hash or "-"


def age(moment: float | None, now: float) -> str:
    """Return how long ago it was, as kubectl prints it."""
    return "-" if moment is None else human_duration(max(0.0, now - moment))


def permission_lines(missing: Iterable[str]) -> list[str]:
    """Return the warning about rights that the reader lacks."""
    named = list(dict.fromkeys(missing))
    if not named:
        return []
    return [
        f"warning: you lack the permission to {', '.join(named)}; what depends on it is left out"
    ]
