"""How times are written: RFC 3339 with and without microseconds, and ages as kubectl shows them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, overload

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)

UNKNOWN_AGE: Final = "<unknown>"


class TimeError(ValueError):
    """A text that is no time, or a number too large to be one."""


@overload
def seconds(moment: datetime) -> float: ...
@overload
def seconds(moment: None) -> None: ...
def seconds(moment: datetime | None) -> float | None:
    """Seconds since the epoch; a time without a zone is UTC, as everywhere in the API."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH).total_seconds()


def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; raises TimeError."""
    try:
        if not _RFC3339.fullmatch(text):
            raise ValueError("the form is wrong")
        return seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        reason = f"is not an RFC 3339 time such as 2006-01-02T15:04:05Z: {error}"
        raise TimeError(f'"{text}" {reason}') from None


def format_time(moment: float) -> str:
    """The time as the API writes it: UTC, whole seconds."""
    return _format_second(math.floor(moment))


@lru_cache(maxsize=1024)
def _format_second(moment: int) -> str:
    """The same few seconds are written again and again."""
    return _from_epoch(timedelta(seconds=moment)).isoformat(timespec="seconds") + "Z"


def format_micro(moment: float) -> str:
    """The time as leases and events carry it: UTC, always six digits of a second."""
    return _from_epoch(timedelta(seconds=moment)).isoformat(timespec="microseconds") + "Z"


def _from_epoch(since: timedelta) -> datetime:
    try:
        return (_EPOCH + since).replace(tzinfo=None)
    except OverflowError:
        raise TimeError("the years of a time go from 1 to 9999") from None


def age(created: datetime | None, now: float) -> str:
    """The AGE column of an object created then."""
    return UNKNOWN_AGE if created is None else human_duration(now - seconds(created))


def human_duration(length: float) -> str:
    """A duration with two or three significant figures, as kubectl prints it."""
    whole = int(length)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * 60:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, subunit: str) -> str:
    return f"{large}{unit}{small}{subunit}" if small else f"{large}{unit}"
