"""How long a request may take: the `timeout` of its query."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from everynode.cluster.errors import Refusal, bad_request
from everynode.cluster.gotext import quote
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


def allowed_seconds(request: Request) -> float | None:
    """How long a write may take; None for reads and for writes that do not say.

    Who gives no time at all means that it does not matter; nonsense is refused for reads too.
    """
    for name, text in request.query:
        if name == "timeout":
            seconds = parse_duration(text) if text else 0.0
            return seconds if seconds > 0 and request.method not in _READS else None
    return None


@lru_cache(maxsize=256)
def parse_duration(text: str) -> float:
    """Seconds of a duration as Go writes them, such as `1m30s` or `500ms`."""
    sign = _SIGN.match(text)
    assert sign is not None  # it may be empty
    begin = end = sign.end()
    if text[begin:] == "0":
        return 0.0
    total = 0.0
    while found := _PIECE.match(text, end):
        number, unit = found.groups()
        if not unit:
            raise _refused(f"missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise _refused(f"unknown unit {quote(unit)} in duration {quote(text)}")
        total += float(number) * _UNITS[unit]
        end = found.end()
    if end == begin or end != len(text):
        raise _refused(f"invalid duration {quote(text)}")
    return -total if text.startswith("-") else total


def _refused(why: str) -> Refusal:
    return bad_request(f"invalid timeout specified in the request URL - time: {why}")
