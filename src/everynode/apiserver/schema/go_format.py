"""Go's formatting of values (%v, %#v, %q, %T), which the messages of kube-apiserver contain."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_CONTROL: Final = re.compile(r"\\u00([01][0-9a-f])")


def format_value(value: Any) -> str:
    """Format a value like %v: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_value, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, float) else str(value)


def format_go_syntax(value: Any) -> str:
    """Format a value like %#v: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{quote(key)}:{format_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(format_go_syntax, value))}}}"
    return quote(value) if isinstance(value, str) else format_value(value)


def quote(text: str) -> str:
    """Format a string like %q."""
    return _CONTROL.sub(r"\\x\1", msgspec.json.encode(text).decode())


def go_type_name(value: Any) -> str:
    """Return the Go type of a decoded value, like %T: `string`, `map[string]interface {}`."""
    if isinstance(value, bool):
        return "bool"
    return _GO_TYPES.get(type(value), "<nil>")


_GO_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def _number(value: float) -> str:
    text = repr(value)
    return text.removesuffix(".0") if abs(value) < 1e21 else text
