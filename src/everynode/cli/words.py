"""How durations, numbers and shares of nodes are typed and read."""

from __future__ import annotations

import re
from typing import Final

from everynode.api.amount import parse_amount, scale
from everynode.api.daemonset import Amount
from everynode.cli.errors import WrongUsage

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_LONGEST: Final = 86400.0


def parse_duration(option: str, text: str) -> float:
    """Seconds, of `90s`, `1m30s` or plain `90`; raises WrongUsage."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text += "s"
    if not _DURATION.fullmatch(text):
        raise WrongUsage(f"{option} {text}: give a duration such as 20s, 1m30s or 2h")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if total > _LONGEST:
        raise WrongUsage(f"{option} {text}: at most a day")
    return total


def parse_share(option: str, text: str, total: int) -> int:
    """How many nodes `15` or `3%` are among all, percentages rounded up; raises WrongUsage."""
    amount = parse_amount(int(text) if re.fullmatch(r"\d+", text) else text, at_most_all=True)
    if not isinstance(amount, Amount):
        raise WrongUsage(f"{option} {text}: give a number of nodes or a percentage such as 3%")
    count = scale(amount, total, round_up=True)
    if count > total:
        raise WrongUsage(f"{option} {text}: there are only {total} nodes")
    return count


def show_duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3 min 20 s`, `2 h 5 min`, `4 d 6 h`: the two largest parts."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min")]
    parts.append((whole % 60, "s"))
    first = next((i for i, (number, _) in enumerate(parts) if number), len(parts) - 1)
    said = [f"{number} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(said) or "0 s"


def count_of(number: int, noun: str) -> str:
    """`1 node`, `1,234 nodes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
