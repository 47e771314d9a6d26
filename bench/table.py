"""One table for all measurements, with ratios where two did the same work."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

OURS = "everynode"
HEADINGS = ("nodes", "work", "who", "CPU ms/pod", "writes/pod", "s", "pods/s", "of ideal")
MORE = ("created s", "gap ms", "RSS MB", "peak MB")
RATIOS = ("nodes", "work", "CPU per pod", "memory", "writes per pod", "time")


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one contender did, and what it cost."""

    who: str
    work: str
    nodes: int
    cpu_ms: float  # per pod; at rest, of the whole time
    writes: float  # per pod; at rest, all of them
    seconds: float = 0.0  # until the status says that all is done
    created: float = 0.0  # until the last pod was there, Ready or not
    rate: float = 0.0  # pods per second
    ideal: float = 0.0  # maxUnavailable ÷ (time to stop + time to start), as measured
    gap_ms: float = 0.0  # between the end of a pod and the sight of the next
    resident: float = 0.0
    peak: float = 0.0


def print_table(rows: Sequence[Row]) -> None:
    """Print everything that was measured."""
    _print([(*HEADINGS, *MORE), *(_line(row) for row in rows)], left=(1, 2))


def print_ratios(rows: Sequence[Row]) -> None:
    """Print how many times as much each of the others took for the same work."""
    ours = {(row.work, row.nodes): row for row in rows if row.who == OURS}
    for who in dict.fromkeys(row.who for row in rows if row.who != OURS):
        theirs = [row for row in rows if row.who == who and (row.work, row.nodes) in ours]
        if theirs:
            print(f"\n{who} takes, where {OURS} takes 1:")
            pairs = [_ratios(ours[row.work, row.nodes], row) for row in theirs]
            _print([RATIOS, *pairs], left=(1,))


def _print(lines: Sequence[tuple[str, ...]], *, left: Sequence[int]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = [
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _ratios(ours: Row, theirs: Row) -> tuple[str, ...]:
    pairs = (
        (ours.cpu_ms, theirs.cpu_ms),
        (ours.resident, theirs.resident),
        (ours.writes, theirs.writes),
        (ours.seconds, theirs.seconds),
    )
    return (str(ours.nodes), ours.work, *(f"{b / a:.2f}" if a else "" for a, b in pairs))


def _line(row: Row) -> tuple[str, ...]:
    return (
        str(row.nodes),
        row.work,
        row.who,
        f"{row.cpu_ms:.2f}",
        f"{row.writes:.2f}",
        f"{row.seconds:.0f}",
        f"{row.rate:.1f}" if row.rate else "",
        f"{row.rate / row.ideal:.0%}" if row.ideal else "",
        f"{row.created:.0f}" if row.created else "",
        f"{row.gap_ms:.0f}" if row.gap_ms else "",
        f"{row.resident:.0f}",
        f"{row.peak:.0f}",
    )
