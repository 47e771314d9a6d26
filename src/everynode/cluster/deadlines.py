"""Until when a write may be committed: the `timeout` of its query."""

from __future__ import annotations

import re
from typing import Final

from everynode.cluster.errors import bad_request
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
_PIECE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_READS: Final = ("GET", "HEAD")


def allowed_seconds(request: Request) -> float | None:
    """How long a write may take; None for reads and for writes that do not say."""
    if request.method in _READS:
        return None
    text = next((value for name, value in request.query if name == "timeout"), "")
    return parse_duration(text) if text else None


def parse_duration(text: str) -> float:
    """Seconds of a duration as Go writes them, such as `1m30s` or `500ms`."""
    if text == "0":
        return 0.0
    end, total = 0, 0.0
    while found := _PIECE.match(text, end):
        total += float(found[1]) * _UNITS[found[2]]
        end = found.end()
    if end == 0 or end != len(text):
        raise bad_request(f'invalid timeout specified in the request URL: "{text}" is no duration')
    return total
