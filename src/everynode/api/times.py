"""Times: RFC 3339 as in Time and MicroTime fields, and durations as kubectl prints them."""

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
    """A text that is not a time, or a number too large to be one."""


@overload
def seconds(moment: datetime) -> float: ...
@overload
def seconds(moment: None) -> None: ...
def seconds(moment: datetime | None) -> float | None:
    """Return seconds since the epoch; a time without a zone is UTC, as everywhere in the API."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH).total_seconds()


def parse_time(text: str) -> float:
    """Parse an RFC 3339 time into seconds since the epoch; raises TimeError."""
    try:
        if not _RFC3339.fullmatch(text):
            raise ValueError("it has another format")
        return seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        reason = f"is not an RFC 3339 time such as 2006-01-02T15:04:05Z: {error}"
        raise TimeError(f'"{text}" {reason}') from None


def format_time(moment: float) -> str:
    """Format a time as the API's Time: UTC, whole seconds."""
    return _format_second(math.floor(moment))


@lru_cache(maxsize=1024)
def _format_second(moment: int) -> str:
    # Cached because most times written are one of the last few seconds.
    return _from_epoch(moment).isoformat(timespec="seconds") + "Z"


def write_time(moment: datetime) -> str:
    """Format the time of an object's field as the API's Time.

    In the years 1 and 9999 the conversion to UTC can leave the range of datetime: the time is then
    written without conversion.
    """
    try:
        return format_time(seconds(moment))
    except TimeError:
        return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_micro_time(moment: float) -> str:
    """Format a time as the API's MicroTime (leases, events): UTC, six digits of a second."""
    return _from_epoch(moment).isoformat(timespec="microseconds") + "Z"


def _from_epoch(moment: float) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=moment)).replace(tzinfo=None)
    except OverflowError:
        raise TimeError("the years of a time go from 1 to 9999") from None


def human_duration(length: float) -> str:
    """Format a duration with two or three significant figures, as kubectl does."""
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
