"""JSON splitting: the members of an object or array, where the whole cannot be decoded.

One bad escape, or one value that is nested too deep, makes a decoder refuse a whole list. Strings
and brackets are enough to find where each part begins and ends; the caller decodes its content.
This is far slower than decoding, so it is used only where decoding failed.
"""

from __future__ import annotations

import re
from typing import Final

# Possessive quantifiers, so that an unterminated string costs one pass; its quote matches alone.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_KEY: Final = re.compile(rb'\s*"((?:[^"\\]++|\\.)*+)"\s*:', re.DOTALL)
_QUOTE, _COMMA = b'",'
_OPENING: Final = b"[{"
_SPACE: Final = b" \t\r\n"


def members(body: bytes) -> dict[bytes, bytes]:
    """Return the raw values of an object by key; raises ValueError if it is incomplete."""
    found: dict[bytes, bytes] = {}
    for part in _parts(body, b"{"):
        key = _KEY.match(part)
        if key is None:
            raise ValueError("a value has no key")
        found[key[1]] = part[key.end() :].strip(_SPACE)
    return found


def elements(body: bytes) -> list[bytes]:
    """Return the raw elements of an array; raises ValueError if it is incomplete."""
    return _parts(body, b"[")


def _parts(body: bytes, opening: bytes) -> list[bytes]:
    text = body.strip(_SPACE)
    if text[:1] != opening:
        raise ValueError(f"it does not begin with {opening.decode()}")
    parts: list[bytes] = []
    depth, start = 0, 1
    for match in _TOKEN.finditer(text):
        at, end = match.span()
        letter = text[at]
        if letter == _QUOTE:
            if end - at == 1:
                raise ValueError("a string has no end")
        elif letter == _COMMA:
            if depth == 1:
                parts.append(text[start:at].strip(_SPACE))
                start = end
        elif letter in _OPENING:
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                if end != len(text):
                    raise ValueError("something follows its end")
                last = text[start:at].strip(_SPACE)
                return [*parts, last] if parts or last else []
    raise ValueError("it ends in the middle")
