"""Which objects a list or a watch is about: label and field selectors of a query."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from everynode.cluster.errors import Refusal, bad_request
from everynode.cluster.store import Record

_KEY: Final = re.compile(
    r"([a-z0-9A-Z]([-a-z0-9A-Z.]{0,251}[a-z0-9A-Z])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SET: Final = re.compile(r"\s*(\S+)\s+(in|notin)\s*\(([^()]*)\)\s*")
_COMPARE: Final = re.compile(r"\s*([^\s=!<>,()]+)\s*(==|=|!=|>|<)\s*([^\s=!<>,()]*)\s*")
_EXISTS: Final = re.compile(r"\s*(!?)\s*([^\s=!<>,()]+)\s*")


class LabelRule(msgspec.Struct, frozen=True):
    """One requirement on a label."""

    key: str
    operator: str  # in, notin, exists, missing, gt, lt
    values: tuple[str, ...] = ()

    def holds(self, labels: dict[str, str]) -> bool:
        """Whether the labels are as required."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values if value is not None else False
            case "notin":
                return value not in self.values if value is not None else True
            case "exists":
                return value is not None
            case "missing":
                return value is None
        return value is not None and _compare(value, self.values[0], self.operator)


def _compare(value: str, bound: str, operator: str) -> bool:
    try:
        left, right = int(value), int(bound)
    except ValueError:
        return False
    return left > right if operator == "gt" else left < right


class FieldRule(msgspec.Struct, frozen=True):
    """One requirement on a field."""

    field: str
    equal: bool
    value: str


class Selection(msgspec.Struct, frozen=True):
    """A namespace, labels and fields; empty selects everything."""

    namespace: str = ""
    labels: tuple[LabelRule, ...] = ()
    fields: tuple[tuple[Callable[[Record], str], bool, str], ...] = ()

    @property
    def filtered(self) -> bool:
        """Whether there is anything beyond the namespace to ask of an object."""
        return bool(self.labels or self.fields)

    def matches(self, record: Record) -> bool:
        """Whether the object is selected."""
        if self.namespace and record.namespace != self.namespace:
            return False
        for rule in self.labels:
            if not rule.holds(record.labels):
                return False
        return all((read(record) == value) is equal for read, equal, value in self.fields)


@functools.lru_cache(maxsize=1024)
def parse_labels(text: str) -> tuple[LabelRule, ...]:
    """Read a label selector as it stands in a query."""
    return tuple(_label_rule(part, text) for part in _split(text))


def _split(text: str) -> list[str]:
    """Cut at the commas that are not between parentheses."""
    if not text.strip():
        return []
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _label_rule(part: str, text: str) -> LabelRule:
    if found := _SET.fullmatch(part):
        values = tuple(value.strip() for value in found[3].split(","))
        return _checked(LabelRule(found[1], found[2], values), text)
    if found := _COMPARE.fullmatch(part):
        operator = {"!=": "notin", ">": "gt", "<": "lt"}.get(found[2], "in")
        return _checked(LabelRule(found[1], operator, (found[3],)), text)
    if found := _EXISTS.fullmatch(part):
        return _checked(LabelRule(found[2], "missing" if found[1] else "exists"), text)
    raise _unreadable(text, f"found {part.strip()!r} where a requirement was expected")


def _checked(rule: LabelRule, text: str) -> LabelRule:
    if not _KEY.fullmatch(rule.key):
        raise _unreadable(text, f"{rule.key!r} is not a label key")
    for value in rule.values:
        if not _VALUE.fullmatch(value):
            raise _unreadable(text, f"{value!r} is not a label value")
    return rule


def _unreadable(text: str, why: str) -> Refusal:
    return bad_request(f"unable to parse requirement: {why}: in the label selector {text!r}")


@functools.lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[FieldRule, ...]:
    """Read a field selector as it stands in a query."""
    rules = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        found = re.fullmatch(r"([^=!]+?)(!=|==|=)(.*)", part, flags=re.DOTALL)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\([\\,=])", r"\1", found[3])
        rules.append(FieldRule(found[1], found[2] != "!=", value))
    return tuple(rules)


def select(namespace: str, labels: str, fields: str, *, selectable: Sequence[str]) -> Selection:
    """Put a selection together; `selectable` names the fields that records carry, in order."""
    readers = tuple(
        (_reader(rule.field, selectable), rule.equal, rule.value)
        for rule in (parse_fields(fields) if fields else ())
    )
    return Selection(namespace, parse_labels(labels) if labels else (), readers)


def _reader(field: str, selectable: Sequence[str]) -> Callable[[Record], str]:
    if field == "metadata.name":
        return lambda record: record.name
    if field == "metadata.namespace":
        return lambda record: record.namespace
    if field in selectable:
        index = selectable.index(field)
        return lambda record: record.fields[index]
    raise bad_request(f'"{field}" is not a known field selector: only {_known(selectable)}')


def _known(selectable: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in ("metadata.name", "metadata.namespace", *selectable))
