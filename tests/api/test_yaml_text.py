"""YAML from others is read within bounds, and what is beyond them is refused in one line."""

from __future__ import annotations

import pytest

from everynode.api import yaml_text
from everynode.api.yaml_text import YamlError

_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
_LONG_TEXT_OFTEN = f"t: &t {'x' * 100_000}\nall: [{', '.join(['*t'] * 1_000)}]\n"
_MERGES = "m0: &m0 {a: 1, b: 2}\n" + "".join(
    f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 10)
)
_STAIRS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300))

_HOSTILE = {
    "brackets without end": "[" * 100_000,
    "brackets": "[" * 50_000 + "]" * 50_000,
    "braces": "{a: " * 50_000 + "}" * 50_000,
    "dashes": "- " * 50_000 + "a",
    "keys that are lists": "? " * 50_000 + "a",
    "depth by aliases": _STAIRS,
    "a billion laughs": _LAUGHS,
    "a billion merges": _MERGES,
    "a long text often": _LONG_TEXT_OFTEN,
    "a list in itself": "&a [*a]",
    "a key that is a list": "? [a]\n: b",
    "an unknown alias": "a: *b",
    "an unknown tag": "!!python/object/apply:os.system ['true']",
    "a false tag": "!!int abc",
    "a false merge": "<<: 3",
    "a date that is none": "!!timestamp never",
    "a number without end": "1" * 10_000,
    "a number in base 60": "1" + ":1" * 100_000,
    "a zero byte": "a: \0b",
    "half a surrogate pair": "a: \ud800",
    "half a surrogate pair, escaped": '"\\ud800"',
    "an open quotation": '"a',
    "two documents": "a\n---\nb",
    "a wrong tab": "a:\n\t- b",
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_what_is_beyond_the_bounds_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(YamlError) as caught:
        yaml_text.load(_HOSTILE[name])
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", [b"a: \xff", b"\xff\xfea\x00", b"\xc3\x28"])
def test_bytes_that_are_no_utf_8_are_refused(body: bytes) -> None:
    with pytest.raises(YamlError, match="UTF-8"):
        yaml_text.load(body)


def test_a_text_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(YamlError, match="longer than 8 bytes"):
        yaml_text.load("a: 1234567", most_bytes=8)


def test_depth_is_allowed_up_to_the_bound_and_not_beyond() -> None:
    assert yaml_text.load("[" * 5 + "]" * 5, deepest=5) == [[[[[]]]]]
    with pytest.raises(YamlError, match="line 1: exceeded max depth of 5"):
        yaml_text.load("[" * 6 + "]" * 6, deepest=5)
    assert yaml_text.load("a: &a [[1]]\nb: [[*a]]", deepest=5)["b"] == [[[[1]]]]
    with pytest.raises(YamlError, match="line 2: exceeded max depth of 4"):
        yaml_text.load("a: &a [[1]]\nb: [[*a]]", deepest=4)


def test_ordinary_aliases_and_merges_are_read() -> None:
    text = "base: &b {a: 1, c: [x]}\none: *b\ntwo: {<<: *b, a: 2}\n"
    found = yaml_text.load(text)
    assert found["one"] == {"a": 1, "c": ["x"]}
    assert found["two"] == {"a": 2, "c": ["x"]}


def test_an_anchor_ends_with_its_document() -> None:
    assert yaml_text.load_all("[&a x, *a]\n---\n&a y") == [["x", "x"], "y"]
    with pytest.raises(YamlError, match="undefined alias"):
        yaml_text.load_all("&a x\n---\n*a\n")


def test_all_documents_of_a_text_are_read() -> None:
    assert yaml_text.load_all("a: 1\n---\n- b\n---\n") == [{"a": 1}, ["b"], None]


def test_what_looks_like_a_date_is_text() -> None:
    assert yaml_text.load("2024-01-01") == "2024-01-01"


def test_nodes_are_composed_within_the_same_bounds() -> None:
    node = yaml_text.compose("a: 1")
    assert node is not None
    assert node.value[0][1].value == "1"
    with pytest.raises(YamlError, match="excessive aliasing"):
        yaml_text.compose(_LAUGHS)
