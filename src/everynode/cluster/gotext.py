"""Values as the real server's messages show them."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_CONTROL: Final = re.compile(r"\\u00([01][0-9a-f])")


def show(value: Any) -> str:
    """A value in running text: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{show(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(show, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, float) else str(value)


def literal(value: Any) -> str:
    """A value as source text: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{quote(key)}:{literal(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(literal, value))}}}"
    return quote(value) if isinstance(value, str) else show(value)


def quote(text: str) -> str:
    """A text in quotation marks."""
    return _CONTROL.sub(r"\\x\1", msgspec.json.encode(text).decode())


def type_of(value: Any) -> str:
    """What a decoded value is: `string`, `map[string]interface {}`."""
    if isinstance(value, bool):
        return "bool"
    return _NAMES.get(type(value), "<nil>")


_NAMES: Final[dict[type, str]] = {
    str: "string",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def _number(value: float) -> str:
    text = repr(value)
    return text.removesuffix(".0") if abs(value) < 1e21 else text
