from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.daemonset import LabelSelector, LabelSelectorRequirement
from everynode.api.selector import (
    LabelMatcher,
    SelectorError,
    compile_selector,
    format_selector,
    label_key_errors,
    label_value_errors,
    matches,
    parse_query,
)

KEYS = ("app", "tier", "example.com/zone")
VALUES = ("", "a", "b", "in", "7")

labels_of_objects = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
values_of_requirements = st.sets(st.sampled_from(VALUES), min_size=1, max_size=3).map(tuple)
requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        values_of_requirements,
    ),
    st.builds(
        LabelSelectorRequirement, st.sampled_from(KEYS), st.sampled_from(("Exists", "DoesNotExist"))
    ),
)
selectors = st.builds(
    LabelSelector,
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
    st.lists(requirements, max_size=3).map(tuple),
)


def naive(selector: LabelSelector, labels: dict[str, str]) -> bool:
    for key, value in selector.match_labels.items():
        if key not in labels or labels[key] != value:
            return False
    for each in selector.match_expressions:
        there = each.key in labels
        held = {
            "In": there and labels[each.key] in each.values,
            "NotIn": not there or labels[each.key] not in each.values,
            "Exists": there,
            "DoesNotExist": not there,
        }
        if not held[each.operator]:
            return False
    return True


@given(selectors, labels_of_objects)
def test_matching_is_what_the_words_say(selector: LabelSelector, labels: dict[str, str]) -> None:
    assert matches(selector, labels) is naive(selector, labels)


@given(selectors, labels_of_objects)
def test_a_selector_written_as_a_query_selects_the_same(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    query = parse_query(format_selector(selector))
    assert query.matches(labels) is naive(selector, labels)
    assert str(query) == format_selector(selector)


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches(None, {"app": "a"})
    assert matches(LabelSelector(), {})
    assert compile_selector(LabelSelector()).everything
    assert not compile_selector(LabelSelector({"app": "a"})).everything


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (
            LabelSelectorRequirement("app", "Gt", ("1",)),
            '"Gt" is not a valid label selector operator',
        ),
        (LabelSelectorRequirement("app", "="), '"=" is not a valid label selector operator'),
        (LabelSelectorRequirement("app", "In"), "values set can't be empty"),
        (LabelSelectorRequirement("app", "Exists", ("a",)), "values set must be empty"),
        (
            LabelSelectorRequirement("a b", "Exists"),
            'key: Invalid value: "a b": name part must consist of',
        ),
        (LabelSelectorRequirement("app", "In", ("a b",)), 'values[0][app]: Invalid value: "a b"'),
        (LabelSelectorRequirement("-", "In", ("-",)), "[key: Invalid value"),
    ],
)
def test_a_requirement_without_sense_is_refused(
    requirement: LabelSelectorRequirement, message: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_selector(LabelSelector({}, (requirement,)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (LabelSelector(), ""),
        (LabelSelector({"b": "2", "a": "1"}), "a=1,b=2"),
        (LabelSelector({"a": ""}), "a="),
        (LabelSelector({}, (LabelSelectorRequirement("c", "In", ("y", "x")),)), "c in (x,y)"),
        (LabelSelector({}, (LabelSelectorRequirement("c", "NotIn", ("x",)),)), "c notin (x)"),
        (
            LabelSelector(
                {"m": "1"},
                (
                    LabelSelectorRequirement("z", "Exists"),
                    LabelSelectorRequirement("a", "DoesNotExist"),
                ),
            ),
            "!a,m=1,z",
        ),
    ],
)
def test_selectors_are_written_sorted(selector: LabelSelector, text: str) -> None:
    assert format_selector(selector) == text


def test_an_empty_selector_is_shown_as_asked() -> None:
    assert format_selector(LabelSelector(), empty="<none>") == "<none>"


@pytest.mark.parametrize(
    ("query", "selected", "passed_over"),
    [
        ("", {}, None),
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        ("a = b", {"a": "b"}, {}),
        ("a=", {"a": ""}, {"a": "b"}),
        ("a=,c", {"a": "", "c": "d"}, {"a": ""}),
        ("a!=b", {}, {"a": "b"}),
        ("a!=", {"a": "b"}, {"a": ""}),
        ("a", {"a": "b"}, {"b": "a"}),
        ("!a", {"b": "a"}, {"a": "b"}),
        ("! a", {"b": "a"}, {"a": "b"}),
        ("a in (x,y)", {"a": "y"}, {"a": "z"}),
        ("a in ( x , y )", {"a": "x"}, {}),
        ("a in ()", {"a": ""}, {"a": "x"}),
        ("a in (,x)", {"a": ""}, {"a": "y"}),
        ("a in (x,)", {"a": ""}, {"a": "y"}),
        ("a notin (x,y)", {}, {"a": "x"}),
        ("in in (in)", {"in": "in"}, {}),
        ("a>5", {"a": "6"}, {"a": "5"}),
        ("a<5", {"a": "4"}, {"a": "x"}),
        ("a=b,c in (x,y),!d,e!=f,g", {"a": "b", "c": "x", "g": ""}, {"a": "b", "c": "x"}),
    ],
)
def test_queries_select(
    query: str, selected: dict[str, str], passed_over: dict[str, str] | None
) -> None:
    matcher = parse_query(query)
    assert matcher.matches(selected)
    assert passed_over is None or not matcher.matches(passed_over)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
    ],
)
def test_a_bad_query_is_refused_with_the_servers_words(query: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_query(query)
    assert str(caught.value) == message


def test_equality_is_with_one_value() -> None:
    with pytest.raises(SelectorError, match="exact-match compatibility requires one single value"):
        LabelMatcher((LabelSelectorRequirement("a", "=", ("1", "2")),))


def test_only_integers_can_be_compared() -> None:
    with pytest.raises(SelectorError, match="'Gt', 'Lt' operators, the value must be an integer"):
        parse_query("a>x")


def test_a_bad_key_in_a_query_is_named_with_its_rule() -> None:
    with pytest.raises(SelectorError, match='<nil>: Invalid value: "a/b/c": a valid label key'):
        parse_query("a/b/c=d")


def test_a_label_that_can_have_one_value_only_can_be_looked_up() -> None:
    matcher = parse_query("a=1,b in (2),c in (3,4),d!=5,e")
    assert [matcher.exact(key) for key in "abcdef"] == ["1", "2", None, None, None, None]


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/a", "a" * 63, f"{'b' * 253}/a"])
def test_good_label_keys_have_no_faults(key: str) -> None:
    assert label_key_errors(key) == ()


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("Example.com/a", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        (f"{'b' * 254}/a", "prefix part must be no more than 253 bytes"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("-a", "name part must consist of alphanumeric characters"),
        ("a\n", "name part must consist of alphanumeric characters"),
        ("a/b/c", "a valid label key must consist of"),
    ],
)
def test_bad_label_keys_are_told_what_is_wrong(key: str, fault: str) -> None:
    assert any(each.startswith(fault) for each in label_key_errors(key))


def test_label_values_may_be_empty_but_neither_long_nor_wild() -> None:
    assert label_value_errors("") == label_value_errors("a_B-9.z") == ()
    assert label_value_errors("a" * 64) == ("must be no more than 63 bytes",)
    assert label_value_errors("a b")[0].startswith("a valid label must be an empty string or")
