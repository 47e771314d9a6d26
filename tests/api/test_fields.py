from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.fields import FieldMatcher, FieldTerm, escape_field, parse_fields
from everynode.api.selector import SelectorError


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("", ()),
        (",,", ()),
        ("=", ()),
        ("metadata.name=x", (FieldTerm("metadata.name", "x"),)),
        ("metadata.name==x", (FieldTerm("metadata.name", "x"),)),
        ("spec.nodeName=", (FieldTerm("spec.nodeName", ""),)),
        (
            "status.phase!=Succeeded,status.phase!=Failed",
            (
                FieldTerm("status.phase", "Failed", equal=False),
                FieldTerm("status.phase", "Succeeded", equal=False),
            ),
        ),
        (r"reason=a\,b\=c\\", (FieldTerm("reason", "a,b=c\\"),)),
    ],
)
def test_field_queries_are_read(query: str, terms: tuple[FieldTerm, ...]) -> None:
    assert parse_fields(query) == FieldMatcher(terms)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_query_is_refused_with_the_servers_words(query: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(query)
    assert str(caught.value) == message


def test_a_field_that_is_not_there_counts_as_empty() -> None:
    matcher = parse_fields("spec.nodeName=,status.phase!=Failed")
    assert matcher.matches({})
    assert not matcher.matches({"spec.nodeName": "n1"})
    assert not matcher.matches({"status.phase": "Failed"})
    assert matcher.exact("spec.nodeName") == ""
    assert matcher.exact("status.phase") is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("x,=\\ ü"), st.booleans())))
def test_a_field_query_survives_being_written(terms: list[tuple[str, str, bool]]) -> None:
    matcher = FieldMatcher(tuple(FieldTerm(*term) for term in terms))
    found = parse_fields(str(matcher))
    assert sorted(map(written, found.terms)) == sorted(map(written, matcher.terms))


def written(term: FieldTerm) -> str:
    return f"{term.field}{'=' if term.equal else '!='}{escape_field(term.value)}"
