"""JSON that is none, and JSON that says a thing twice."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()

# What the parser of the standard library says, and what the real server says for it.
_AFTER: Final = {
    "Expecting property name": "looking for beginning of object key string",
    "Expecting value": "looking for beginning of value",
    "Illegal trailing comma": "looking for beginning of value",
    "Expecting ':'": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX": "in \\u hexadecimal character escape",
}
_ESCAPED: Final = {"'": "\\'", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


class SyntaxFault(ValueError):
    """A text that is no JSON."""


class Pairs(list[tuple[str, Any]]):
    """An object as it was written, with the members that came twice."""


def parse(body: bytes) -> Any:
    """The decoded value; raises SyntaxFault in the words of the real server."""
    try:
        return _DECODER.decode(body)
    except UnicodeDecodeError:
        return parse(body.decode(errors="replace").encode())
    except msgspec.DecodeError as error:
        raise SyntaxFault(_said(body, str(error))) from None
    except RecursionError:
        raise SyntaxFault("exceeded max depth") from None


def parse_pairs(body: bytes) -> Any:
    """The value with every object as Pairs; the body must be known to be JSON."""
    return json.loads(body.decode(errors="replace"), object_pairs_hook=Pairs)


def says_twice(body: bytes, value: Any) -> bool:
    """Whether some object of the body may have a member twice; never wrong when it says no.

    A member that came twice is in the decoded value once, and so is written with fewer quotation
    marks. Counting them is a hundred times cheaper than looking.
    """
    return b"\\u0022" in body or body.count(b'"') != _ENCODER.encode(value).count(b'"')


def duplicates(value: Any, path: str = "") -> list[str]:
    """The paths of members that come more than once, each named once, in the order written."""
    found: list[str] = []
    if isinstance(value, Pairs):
        seen: dict[str, bool] = {}
        for key, child in value:
            inner = f"{path}.{key}" if path else key
            if seen.get(key) is False:
                found.append(inner)
            seen[key] = key in seen
            found += duplicates(child, inner)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += duplicates(child, f"{path}[{index}]")
    return found


def _said(body: bytes, fallback: str) -> str:
    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _reworded(text, error)
    except RecursionError:
        return "exceeded max depth"
    return fallback


def _reworded(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    quoted = error.msg.startswith("Invalid control")
    while at < len(text) and text[at] in " \t\r\n" and not quoted:
        at += 1
    if at >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    for literal in ("null", "true", "false"):
        if error.msg.startswith("Expecting value") and text[at] == literal[0]:
            return _in_literal(text[at:], literal)
    if error.msg.startswith("Expecting ','"):
        inside = "array element" if _in_array(text[:at]) else "object key:value pair"
        where = f"after {inside}"
    else:
        known = (words for start, words in _AFTER.items() if error.msg.startswith(start))
        where = next(known, error.msg)
    return f"invalid character {_shown(text[at])} {where}"


def _shown(char: str) -> str:
    return f"'{_ESCAPED.get(char, char)}'"


def _in_literal(text: str, literal: str) -> str:
    for have, want in zip(text, literal, strict=False):
        if have != want:
            where = f"in literal {literal} (expecting {_shown(want)})"
            return f"invalid character {_shown(have)} {where}"
    return "unexpected end of JSON input"


def _in_array(text: str) -> bool:
    """Whether the innermost bracket that is open at the end of the text is a square one."""
    open_ones: list[str] = []
    quoted = escaped = False
    for char in text:
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            open_ones.append(char)
        elif char in "]}" and open_ones:
            open_ones.pop()
    return bool(open_ones) and open_ones[-1] == "["
