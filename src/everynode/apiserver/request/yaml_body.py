"""YAML bodies: decoded to JSON values as sigs.k8s.io/yaml does, with duplicate keys reported."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

from everynode.api import yaml_text

_MAX_INTEGER_DIGITS: Final = 400  # Python refuses more than 4300; no field holds that many
_INTEGER: Final = re.compile(r"^[-+]?(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(r"^[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$")
_INFINITE: Final = re.compile(r"^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")
_LITERALS: Final = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


class YamlBodyError(ValueError):
    """The text is not YAML, or has a value that JSON cannot hold."""


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return the value of a YAML document, and a message for each duplicate key."""
    try:
        node = yaml_text.compose(body)
    except yaml_text.YamlError as error:
        # Go's yaml counts lines from one in scanner errors, from zero in parser errors.
        where = "" if error.line is None else f"line {error.line + error.scanned}: "
        raise YamlBodyError(f"yaml: {where}{error.problem}") from None
    duplicates: list[str] = []
    return (_value(node, duplicates) if node is not None else None), duplicates


def _value(node: yaml.Node, duplicates: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, duplicates)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, duplicates) for item in node.value]
    assert isinstance(node, yaml.ScalarNode)
    # Quoted and block scalars, and those tagged `!`, are strings.
    if node.style in ("'", '"', "|", ">") or node.tag == "!":
        return node.value
    if node.tag == "tag:yaml.org,2002:str" and node.value[:1] in "+-.0123456789":
        return _number(node.value) if "e" in node.value.lower() else node.value
    return _plain_scalar(node.value)


def _mapping(node: yaml.MappingNode, duplicates: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            merged = _merge_key(value_node, duplicates)
            continue
        key = _key(_value(key_node, duplicates))
        if key in out:
            line = key_node.start_mark.line + 1
            duplicates.append(f'line {line}: key "{key}" already set in map')
        out[key] = _value(value_node, duplicates)
    return {**merged, **out} if merged else out


def _merge_key(node: yaml.Node, duplicates: list[str]) -> dict[str, Any]:
    value = _value(node, duplicates)
    parts = value if isinstance(value, list) else [value]
    out: dict[str, Any] = {}
    for part in reversed(parts):
        out.update(part if isinstance(part, dict) else {})
    return out


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _plain_scalar(text: str) -> Any:
    return _LITERALS[text] if text in _LITERALS else _number(text)


def _number(text: str) -> Any:
    if _INTEGER.match(text):
        digits = text.replace("_", "")
        sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.lstrip("+"))
        if re.fullmatch(r"0[0-7]+", digits):
            return sign * int(digits, 8)
        if len(digits) > _MAX_INTEGER_DIGITS:
            raise YamlBodyError(f"json: unsupported value: {digits[:20]}...")
        return sign * int(digits, 0)
    if _INFINITE.match(text):
        raise YamlBodyError(f"json: unsupported value: {text}")
    if not _FLOAT.match(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise YamlBodyError(f"json: unsupported value: {text[:40]}")
    # Whole numbers become integers, as in JSON.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
