"""JSON paths of printer columns: fields, indexes, `[*]` and `[?(@.type=="Ready")]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.apiserver.output.table.cells import format_age
from everynode.apiserver.schema.go_format import format_value

Find = Callable[[Any], list[Any]]
_Step = Callable[[Any], Iterable[Any]]

_TOKEN: Final = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)            # .name, with dots of its own as \.
      |\[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\]    # ['name']
      |\[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]    # ["name"]
      |\[\s*(?P<index>-?\d+)\s*\]                 # [0]
      |\[\s*(?P<from>-?\d*)\s*:\s*(?P<to>-?\d*)\s*\]  # [1:3]
      |(?P<all>\[\s*\*\s*\]|\.\*)                 # [*]
      |\[\s*\?\s*\((?P<filter>.*?)\)\s*\]         # [?(…)]
    """,
    re.X,
)
_OPERATOR: Final = re.compile("==|!=|<=|>=|<|>")


class PathError(ValueError):
    """A path that cannot be parsed."""


@lru_cache(maxsize=512)
def compile_path(path: str) -> Find:
    """Return a function that finds the values at a path, in order; raises PathError."""
    try:
        steps = list(_parse(path))
    except PathError:
        raise
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, deep filters
        raise PathError(f"{path[:80]!r} is not a JSON path that columns support: {error}") from None

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [child for parent in found for child in step(parent)]
        return found

    return find


def _parse(path: str) -> Iterator[_Step]:
    text = path if path.startswith((".", "[")) else f".{path}"
    at = 0
    if text == ".":
        return
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise PathError(f"{path!r} is not a JSON path that columns support")
        yield _step(token)
        at = token.end()


def _step(token: re.Match[str]) -> _Step:
    groups = token.groupdict()
    if groups["index"] is not None:
        return _item(int(groups["index"]))
    if groups["from"] is not None:
        return _slice(groups["from"], groups["to"])
    if groups["all"] is not None:
        return _all
    if groups["filter"] is not None:
        return _filter(groups["filter"])
    name = next(n for n in (groups["field"], groups["quoted"], groups["double"]) if n is not None)
    return _field(re.sub(r"\\(.)", r"\1", name))


def _field(name: str) -> _Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _item(index: int) -> _Step:
    def step(value: Any) -> list[Any]:
        there = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if there else []

    return step


def _slice(start: str, end: str) -> _Step:
    part = slice(int(start) if start else None, int(end) if end else None)
    return lambda value: value[part] if isinstance(value, list) else []


def _all(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _filter(text: str) -> _Step:
    text = text.strip()
    sign = _OPERATOR.search(text)
    if sign is None:
        if "=" in text or "!" in text:
            raise PathError(f"{text!r} is not a condition")
        exists = compile_path(text.removeprefix("@"))
        return lambda value: [item for item in _all(value) if exists(item)]
    path, literal = text[: sign.start()].rstrip(), text[sign.end() :].lstrip()
    if not path.startswith("@") or not literal:
        raise PathError(f"{text!r} is not a condition")
    find, wanted = compile_path(path[1:] or "."), _literal(literal)
    holds = _OPERATORS[sign[0]]

    def step(value: Any) -> list[Any]:
        return [item for item in _all(value) if any(holds(f, wanted) for f in find(item))]

    return step


def _literal(text: str) -> Any:
    if text[0] in "'\"" and text[-1] == text[0] and len(text) > 1:
        return text[1:-1]
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        raise PathError(f"{text!r} is not a value to compare with") from None


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        both = (isinstance(left, int | float), isinstance(right, int | float))
        same = all(both) or (isinstance(left, str) and isinstance(right, str))
        return same and compare(left, right)

    return holds


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: left == right and isinstance(left, bool) == isinstance(right, bool),
    "!=": lambda left, right: left != right,
    "<": _ordering(lambda left, right: left < right),
    ">": _ordering(lambda left, right: left > right),
    "<=": _ordering(lambda left, right: left <= right),
    ">=": _ordering(lambda left, right: left >= right),
}


def custom_cell(found: list[Any], kind: str, now: float) -> Any:
    """Return the cell of a column of this type; None if there is nothing to show."""
    value = found[0] if found else None
    if not found or (value is None and kind != "string"):
        return None
    if kind == "string":
        return _text(value)
    if kind == "date":
        return format_age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return {"integer": int, "number": float}[kind](value) if kind in ("integer", "number") else None


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="sorted").decode()
    return "<no value>" if value is None else format_value(value)
