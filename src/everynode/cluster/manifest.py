"""YAML as the API server reads it: plain JSON values, and keys that are said twice."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER: Final = re.compile(r"^[-+]?(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(r"^[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$")
_ENDLESS: Final = re.compile(r"^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")
_LITERALS: Final = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


class ManifestError(ValueError):
    """A text that is no YAML."""


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The value in a YAML document, and its keys that are said twice, line by line."""
    try:
        node = yaml.compose(body.decode(), Loader=_Loader)
    except UnicodeDecodeError:
        raise ManifestError("yaml: invalid UTF-8") from None
    except yaml.MarkedYAMLError as error:
        # As the real server counts: lines from one for letters, from zero for sentences.
        first = isinstance(error, yaml.scanner.ScannerError)
        line = (error.problem_mark.line if error.problem_mark else 0) + first
        raise ManifestError(f"yaml: line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ManifestError(f"yaml: {error}") from None
    twice: list[str] = []
    return (_value(node, twice) if node is not None else None), twice


def _value(node: yaml.Node, twice: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, twice)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, twice) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    # Texts in quotation marks, and those with a tag of their own, are texts.
    if node.style in ("'", '"', "|", ">") or node.tag == "!":
        return node.value
    if node.tag == "tag:yaml.org,2002:str" and node.value[:1] in "+-.0123456789":
        return _number(node.value) if "e" in node.value.lower() else node.value
    return _plain(node.value)


def _mapping(node: yaml.MappingNode, twice: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            merged = _merged(value_node, twice)
            continue
        key = _key(_value(key_node, twice))
        if key in out:
            line = key_node.start_mark.line + 1
            twice.append(f'line {line}: key "{key}" already set in map')
        out[key] = _value(value_node, twice)
    return {**merged, **out} if merged else out


def _merged(node: yaml.Node, twice: list[str]) -> dict[str, Any]:
    value = _value(node, twice)
    parts = value if isinstance(value, list) else [value]
    out: dict[str, Any] = {}
    for part in reversed(parts):
        out.update(part if isinstance(part, dict) else {})
    return out


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _plain(text: str) -> Any:
    return _LITERALS[text] if text in _LITERALS else _number(text)


def _number(text: str) -> Any:
    if _INTEGER.match(text):
        digits = text.replace("_", "")
        sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.lstrip("+"))
        if re.fullmatch(r"0[0-7]+", digits):
            return sign * int(digits, 8)
        return sign * int(digits, 0)
    if _ENDLESS.match(text):
        raise ManifestError(f"json: unsupported value: {text}")
    if not _FLOAT.match(text):
        return text
    number = float(text)
    # As JSON writes them: without a fraction where there is none.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
