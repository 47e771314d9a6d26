"""Request timeout: the `timeout` option of a write, a Go duration."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from everynode.apiserver.errors import StatusError, bad_request
from everynode.apiserver.schema.go_format import quote
from everynode.kube.requests import Request

_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_SIGN: Final = re.compile(r"[-+]?")
_PIECE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)")
_READS: Final = ("GET", "HEAD")


def write_timeout(request: Request) -> float | None:
    """Return how many seconds a write may take; None for reads and for writes without a limit.

    An empty or zero `timeout` means no limit. An invalid one is an error for reads too.
    """
    for name, text in request.query:
        if name == "timeout":
            seconds = parse_duration(text) if text else 0.0
            return seconds if seconds > 0 and request.method not in _READS else None
    return None


@lru_cache(maxsize=256)
def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration such as `1m30s` or `500ms`."""
    sign = _SIGN.match(text)
    assert sign is not None  # it may be empty
    begin = end = sign.end()
    if text[begin:] == "0":
        return 0.0
    total = 0.0
    while found := _PIECE.match(text, end):
        number, unit = found.groups()
        if not unit:
            raise _bad_timeout(f"missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise _bad_timeout(f"unknown unit {quote(unit)} in duration {quote(text)}")
        total += float(number) * _UNITS[unit]
        end = found.end()
    # Go counts nanoseconds in 64 bits.
    if end == begin or end != len(text) or total * 1e9 >= 1 << 63:
        raise _bad_timeout(f"invalid duration {quote(text)}")
    return -total if text.startswith("-") else total


def _bad_timeout(why: str) -> StatusError:
    return bad_request(f"invalid timeout specified in the request URL - time: {why}")
