"""JSON parsing: syntax errors in Go's wording, and detection of duplicate keys."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()

# How a message of Python's json parser begins -> Go's wording for the same error.
_GO_MESSAGES: Final = {
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


class JsonSyntaxError(ValueError):
    """The text is not JSON; the message is Go's."""


class KeyValuePairs(list[tuple[str, Any]]):
    """A JSON object as a list of key-value pairs, duplicate keys included."""


def parse_json(body: bytes) -> Any:
    """Decode JSON; raises SyntaxFault with the message of kube-apiserver."""
    try:
        return _DECODER.decode(body)
    except UnicodeDecodeError:
        return parse_json(body.decode(errors="replace").encode())
    except msgspec.DecodeError as error:
        raise JsonSyntaxError(_syntax_error_message(body, str(error))) from None
    except RecursionError:
        raise JsonSyntaxError("exceeded max depth") from None
    except ValueError:
        raise JsonSyntaxError("a number is too long") from None  # thousands of digits


def parse_pairs(body: bytes) -> Any:
    """Decode JSON with every object as Pairs; the body must be valid JSON."""
    return json.loads(body.decode(errors="replace"), object_pairs_hook=KeyValuePairs)


def may_have_duplicate_keys(body: bytes, value: Any) -> bool:
    """Whether some object of the body may have a duplicate key; False is always right.

    The decoded value holds a duplicate key once, so encoding it again gives fewer quotation marks
    than the body has: `{"a":1,"a":2}` has four, `{"a":2}` two. Counting them is a hundred times
    cheaper than parsing into pairs. An escaped quotation mark (`\\u0022`) makes the count useless.
    """
    return b"\\u0022" in body or body.count(b'"') != _ENCODER.encode(value).count(b'"')


def duplicate_keys(value: Any, path: str = "") -> list[str]:
    """Return the paths of duplicate keys in a value of `parse_pairs`, each once, in order."""
    found: list[str] = []
    if isinstance(value, KeyValuePairs):
        seen: dict[str, bool] = {}
        for key, child in value:
            inner = f"{path}.{key}" if path else key
            if seen.get(key) is False:
                found.append(inner)
            seen[key] = key in seen
            found += duplicate_keys(child, inner)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += duplicate_keys(child, f"{path}[{index}]")
    return found


def _syntax_error_message(body: bytes, fallback: str) -> str:
    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _go_error_message(text, error)
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        return "a number is too long"
    return fallback


def _go_error_message(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    quoted = error.msg.startswith("Invalid control")
    while at < len(text) and text[at] in " \t\r\n" and not quoted:
        at += 1
    if at >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    for literal in ("null", "true", "false"):
        if error.msg.startswith("Expecting value") and text[at] == literal[0]:
            return _literal_error(text[at:], literal)
    if error.msg.startswith("Expecting ','"):
        inside = "array element" if _in_array(text[:at]) else "object key:value pair"
        where = f"after {inside}"
    else:
        known = (words for start, words in _GO_MESSAGES.items() if error.msg.startswith(start))
        where = next(known, error.msg)
    return f"invalid character {_quote(text[at])} {where}"


def _quote(char: str) -> str:
    return f"'{_ESCAPED.get(char, char)}'"


def _literal_error(text: str, literal: str) -> str:
    for have, want in zip(text, literal, strict=False):
        if have != want:
            where = f"in literal {literal} (expecting {_quote(want)})"
            return f"invalid character {_quote(have)} {where}"
    return "unexpected end of JSON input"


def _in_array(text: str) -> bool:
    """Whether the innermost bracket still open at the end of the text is a square one."""
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
