"""Go-compatible parsing: 64-bit numbers with Go's error messages, and invalid Unicode in JSON."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from everynode.apiserver.request.url import replace_invalid_utf8
from everynode.apiserver.schema.go_format import quote
from everynode.kube.requests import Request

_DIGITS: Final = re.compile(r"[0-9]+")
_SIGNED: Final = re.compile(r"[-+]?[0-9]+")
_MAX_DIGITS: Final = 20  # of a 64-bit number, without leading zeros
# A pair of surrogates, a lone surrogate (group 1), or any other escape.
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


class NumberError(ValueError):
    """The text is not a 64-bit number; the message is Go's."""


def parse_uint(text: str) -> int:
    """Parse an unsigned 64-bit number; raises NumberError."""
    return _parse(text, "ParseUint", _DIGITS, low=0, high=(1 << 64) - 1)


def parse_int(text: str) -> int:
    """Parse a signed 64-bit number; raises NumberError."""
    return _parse(text, "ParseInt", _SIGNED, low=-(1 << 63), high=(1 << 63) - 1)


def _parse(text: str, function: str, form: re.Pattern[str], *, low: int, high: int) -> int:
    if not form.fullmatch(text):
        raise NumberError(f"strconv.{function}: parsing {quote(text)}: invalid syntax")
    sign = "-" if text.startswith("-") else ""
    digits = text.lstrip("+-").lstrip("0") or "0"
    # Python refuses to convert more than 4300 digits.
    number = int(sign + digits) if len(digits) <= _MAX_DIGITS else None
    if number is None or not low <= number <= high:
        raise NumberError(f"strconv.{function}: parsing {quote(text)}: value out of range")
    return number


def with_valid_unicode(request: Request) -> Request:
    """Return the request with U+FFFD for invalid UTF-8 and lone surrogates in a JSON body."""
    body = request.body
    if (
        not body
        or not _may_have_bad_unicode(body)
        or "json" not in (request.content_type or "json")
    ):
        return request
    repaired = replace_invalid_utf8(body)
    if b"\\u" in repaired:
        repaired = _ESCAPE.sub(_replace_lone_surrogate, repaired)
    return request if repaired == body else replace(request, body=repaired)


def _may_have_bad_unicode(body: bytes) -> bool:
    return not body.isascii() or b"\\ud" in body or b"\\uD" in body


def _replace_lone_surrogate(found: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if found.group(1) else found.group()
