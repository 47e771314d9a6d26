"""YAML reader with bounds on size, depth, and the expansion of aliases.

PyYAML composes nodes by recursion in C, which crashes the process on deeply nested text, and a few
lines of aliases can expand to more than the memory. Parser events have neither problem, so they are
checked first; only text within the bounds is composed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import yaml

MAX_BYTES: Final = 3 * 1024 * 1024  # an API server's limit for one body
MAX_DEPTH: Final = 200  # far below Python's recursion limit, far above any object
# The size of the values with all aliases expanded, as a multiple of the largest text.
_MAX_EXPANSION: Final = 4
_MAX_NUMBER_CHARACTERS: Final = 400  # longer than any 64-bit number in any notation
_TIMES: Final = "tag:yaml.org,2002:timestamp"

T = TypeVar("T")

_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Text that is not YAML or exceeds a bound; `line` counts from zero."""

    def __init__(self, problem: str, *, line: int | None = None, scanned: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.scanned = scanned  # raised by the scanner or a bound, before parsing

    def __str__(self) -> str:
        """Return the problem with its line, counted from one."""
        return self.problem if self.line is None else f"line {self.line + 1}: {self.problem}"


class _Loader(_Parser):  # type: ignore[misc]
    """Loads values as kubectl does: a date is a string."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return an integer; refuses long ones, as base 60 takes quadratic time."""
        if len(node.value) > _MAX_NUMBER_CHARACTERS:
            raise yaml.constructor.ConstructorError(
                None, None, "found a number that is too long", node.start_mark
            )
        found: int = super().construct_yaml_int(node)
        return found


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMES]
    for letter, resolvers in _Parser.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def load(text: bytes | str, *, most_bytes: int = MAX_BYTES, deepest: int = MAX_DEPTH) -> Any:
    """Return the value of the only document in a text; raises YamlError."""
    raw = _decode_within_bounds(text, most_bytes, deepest)
    return _call_parser(lambda: yaml.load(raw, Loader=_Loader))


def load_all(
    text: bytes | str, *, most_bytes: int = MAX_BYTES, deepest: int = MAX_DEPTH
) -> list[Any]:
    """Return the values of all documents in a text; raises YamlError."""
    raw = _decode_within_bounds(text, most_bytes, deepest)
    return _call_parser(lambda: list(yaml.load_all(raw, Loader=_Loader)))


def compose(
    text: bytes | str, *, most_bytes: int = MAX_BYTES, deepest: int = MAX_DEPTH
) -> yaml.Node | None:
    """Return the node tree of the only document, for callers that parse scalars themselves."""
    raw = _decode_within_bounds(text, most_bytes, deepest)
    found: yaml.Node | None = _call_parser(lambda: yaml.compose(raw, Loader=_Parser))
    return found


def _decode_within_bounds(text: bytes | str, most_bytes: int, deepest: int) -> str:
    """Return the decoded text if it is within the bounds; raises YamlError."""
    if len(text) > most_bytes:
        raise YamlError(f"it is longer than {most_bytes} bytes")
    try:
        # The parser would detect UTF-16 in bytes, and fails on a lone surrogate.
        raw = text.decode("utf-8") if isinstance(text, bytes) else text
        raw.encode("utf-8")
    except UnicodeError:
        raise YamlError("invalid UTF-8") from None
    _call_parser(lambda: _Walk(most_bytes * _MAX_EXPANSION, deepest).go(raw))
    return raw


def _call_parser(read: Callable[[], T]) -> T:
    try:
        return read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else None
        scanned = isinstance(error, yaml.scanner.ScannerError)
        raise YamlError(
            error.problem or "it cannot be parsed", line=line, scanned=scanned
        ) from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from None
    except YamlError:
        raise
    except RecursionError:
        raise YamlError("it is nested too deep") from None
    # Raised for keys that are lists, and for scalars that do not match their tag.
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise YamlError(" ".join(str(error).split()) or "it cannot be parsed") from None


class _Walk:
    """Adds up the size and depth of a text's values from the parser's events.

    Each open collection has its anchor, its weight so far (about its bytes with all aliases
    expanded) and its height (the depth of its content).
    """

    def __init__(self, heaviest: int, deepest: int) -> None:
        self._heaviest = heaviest
        self._deepest = deepest
        self._open: list[list[Any]] = [[None, 0, 0]]
        self._anchors: dict[str, tuple[int, int] | None] = {}  # None: still open

    def go(self, text: str) -> None:
        """Walk all events; raises YamlError where a bound is exceeded."""
        for event in yaml.parse(text, Loader=_Parser):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add(event.anchor, len(event.value) + 2, 0)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._add(*self._open.pop())
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self._anchors.clear()

    def _start(self, event: Any) -> None:
        if len(self._open) > self._deepest:
            raise self._too_deep(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append([event.anchor, 2, 0])

    def _add(self, anchor: str | None, weight: int, height: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = weight, height
        outer = self._open[-1]
        outer[1] += weight
        if height >= outer[2]:
            outer[2] = height + 1

    def _alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor, (0, 0))  # an unknown one is refused later
        if known is None:
            raise _beyond(f"anchor '{event.anchor}' value contains itself", event)
        weight, height = known
        if len(self._open) + height > self._deepest + 1:
            raise self._too_deep(event)
        self._add(None, weight + 2, height)
        # The sum over the open collections, which are few because the depth is bounded.
        if sum(each[1] for each in self._open) > self._heaviest:
            raise _beyond("document contains excessive aliasing", event)

    def _too_deep(self, event: Any) -> YamlError:
        return _beyond(f"exceeded max depth of {self._deepest}", event)


def _beyond(problem: str, event: Any) -> YamlError:
    return YamlError(problem, line=event.start_mark.line, scanned=True)
