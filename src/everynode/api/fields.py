"""Field selectors: parsing and matching of fieldSelector queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from everynode.api.selector import SelectorError


class FieldTerm(msgspec.Struct, frozen=True, gc=False):
    """One condition of a fieldSelector."""

    field: str
    value: str
    equal: bool = True


class FieldMatcher(msgspec.Struct, frozen=True):
    """A compiled fieldSelector; an absent field counts as empty."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether these fields satisfy every term."""
        return all((fields.get(t.field, "") == t.value) is t.equal for t in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the only value that the field may have; None without an equality term."""
        return next((t.value for t in self.terms if t.field == field and t.equal), None)

    def __str__(self) -> str:
        return ",".join(
            f"{t.field}{'=' if t.equal else '!='}{escape_field(t.value)}" for t in self.terms
        )


_TERM_END = re.compile(r"(?:[^\\,]|\\.|\\$)*", re.DOTALL)
_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)|([,=])", re.DOTALL)


def parse_fields(text: str) -> FieldMatcher:
    """Parse a fieldSelector query; raises SelectorError with the API server's message."""
    terms = []
    for part in sorted(_split_fields(text)):
        found = _TERM.fullmatch(part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        field, sign, value = found[1], found[2], _unescape_field(found[3])
        if field or value:
            terms.append(FieldTerm(field, value, sign != "!="))
    return FieldMatcher(tuple(terms))


def _split_fields(text: str) -> Iterable[str]:
    """Split a query at commas that are not escaped; empty terms are skipped."""
    start = 0
    while start <= len(text):
        found = _TERM_END.match(text, start)
        assert found is not None
        if found[0]:
            yield found[0]
        start = found.end() + 1


def escape_field(value: str) -> str:
    """Return a value escaped for use in a fieldSelector."""
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape_field(value: str) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[2]:
            reason = f"unescaped character in value: {ord(found[2])}"
            raise SelectorError(f"invalid field selector: {reason}")
        if found[1] not in ("\\", ",", "=") or not found[1]:
            raise SelectorError(f"invalid field selector: invalid escape sequence: {found[0]}")
        return found[1]

    return _ESCAPE.sub(replace, value)
