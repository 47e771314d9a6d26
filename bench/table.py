"""One table for all measurements, with ratios where two did the same work."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

HEADINGS = ("nodes", "work", "who", "CPU ms/pod", "writes/pod", "s", "pods/s", "of ideal")
MORE = ("gap ms", "RSS MB", "peak MB", "CPU ratio")


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one contender did, and what it cost."""

    who: str
    work: str
    nodes: int
    cpu_ms: float  # per pod; at rest, of the whole time
    writes: float  # per pod; at rest, all of them
    seconds: float = 0.0
    rate: float = 0.0  # pods per second
    ideal: float = 0.0  # maxUnavailable ÷ (time to stop + time to start), as measured
    gap_ms: float = 0.0  # between the end of a pod and the sight of the next
    resident: float = 0.0
    peak: float = 0.0


def print_table(rows: Sequence[Row]) -> None:
    lines = [(*HEADINGS, *MORE), *(_line(row, rows) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = [
            text.ljust(width) if 0 < column < 3 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _line(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    beside = [
        other
        for other in rows
        if (other.work, other.nodes) == (row.work, row.nodes) and other.who != row.who
    ]
    ratio = f"1/{beside[0].cpu_ms / row.cpu_ms:.1f}" if beside and row.cpu_ms else ""
    return (
        str(row.nodes),
        row.work,
        row.who,
        f"{row.cpu_ms:.2f}",
        f"{row.writes:.2f}",
        f"{row.seconds:.0f}",
        f"{row.rate:.1f}" if row.rate else "",
        f"{row.rate / row.ideal:.0%}" if row.ideal else "",
        f"{row.gap_ms:.0f}" if row.gap_ms else "",
        f"{row.resident:.0f}",
        f"{row.peak:.0f}",
        ratio,
    )
