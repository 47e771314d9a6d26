"""Durations, counts and shares of nodes: parse what users type, format what is printed."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.daemonset import IntOrPercent
from everynode.api.int_or_percent import parse_int_or_percent, scaled_value
from everynode.errors import UsageError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_MAX_DURATION: Final = 86400.0


def parse_duration(option: str, text: str) -> float:
    """Parse `90s`, `1m30s` or plain `90` into seconds; raises WrongUsage."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text += "s"
    if not _DURATION.fullmatch(text):
        raise UsageError(f"{option} {text}: give a duration such as 20s, 1m30s or 2h")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if total > _MAX_DURATION:
        raise UsageError(f"{option} {text}: at most a day")
    return total


def parse_node_count(option: str, text: str, total: int) -> int:
    """Parse `15` or `3%` into a number of nodes, percentages rounded up; raises WrongUsage."""
    amount = parse_int_or_percent(
        int(text) if re.fullmatch(r"\d+", text) else text, at_most_all=True
    )
    if not isinstance(amount, IntOrPercent):
        raise UsageError(f"{option} {text}: give a number of nodes or a percentage such as 3%")
    count = scaled_value(amount, total, round_up=True)
    if count > total:
        raise UsageError(f"{option} {text}: there are only {total} nodes")
    return count


def format_duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3 min 20 s`, `2 h 5 min`, `4 d 6 h`: the two largest parts."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min")]
    parts.append((whole % 60, "s"))
    first = next((i for i, (number, _) in enumerate(parts) if number), len(parts) - 1)
    parts_shown = [f"{number} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(parts_shown) or "0 s"


def format_count(number: int, noun: str) -> str:
    """`1 node`, `1,234 nodes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
