"""Curve: nodes updated and nodes down over time, with no more points than a chart can show."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, int, int]  # seconds, updated, down


def thin_out(curve: Sequence[Point], most: int) -> list[Point]:
    """Return at most `most` points; of those left out the most nodes down are kept."""
    if len(curve) <= most:
        return list(curve)
    size = -(-len(curve) // (most - 1))
    parts = [curve[first : first + size] for first in range(0, len(curve), size)]
    return [(part[-1][0], part[-1][1], max(down for _, _, down in part)) for part in parts]
