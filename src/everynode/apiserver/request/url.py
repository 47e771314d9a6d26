"""Request targets: path and query of a URL, percent-decoded as Go's net/http does."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_UTF8: Final = re.compile(r"[\udc80-\udcff]")

Pairs = tuple[tuple[str, str], ...]


class TargetError(ValueError):
    """The request target cannot be decoded."""


def parse_target(target: str) -> tuple[str, Pairs]:
    """Return path and query pairs of a request target; raises TargetError."""
    if not target.startswith("/"):
        target = _strip_host(target)
    path, _, query = target.partition("?")
    if _BAD_ESCAPE.search(path):
        raise TargetError("a percent sign in the path is not followed by two hexadecimal digits")
    return _percent_decode(path), parse_query_string(query)


def parse_query_string(text: str) -> Pairs:
    """Return the pairs of a query; pairs that cannot be decoded are left out, as Go does."""
    found = []
    for pair in text.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, value = pair.replace("+", " ").partition("=")
        found.append((_percent_decode(name), _percent_decode(value)))
    return tuple(found)


def _strip_host(target: str) -> str:
    try:
        parts = urlsplit(target)
    except ValueError:
        raise TargetError("the request target is not a URL") from None
    if not parts.path.startswith("/"):
        raise TargetError("the request target is not a URL")
    return f"{parts.path}?{parts.query}"


def _percent_decode(text: str) -> str:
    """Percent-decode a text; each byte that is not UTF-8 becomes U+FFFD."""
    if "%" not in text and text.isascii():
        return text
    raw = unquote_to_bytes(text.encode(errors="surrogateescape"))
    return replace_invalid_utf8(raw).decode()


def replace_invalid_utf8(raw: bytes) -> bytes:
    """Return the bytes with U+FFFD for each one that is not UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return _NOT_UTF8.sub("\ufffd", raw.decode(errors="surrogateescape")).encode()
    return raw
