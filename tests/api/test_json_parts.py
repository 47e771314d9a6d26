"""The parts of a JSON document are found even if their contents cannot be decoded."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.json_parts import elements, members

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _VALUES), st.sampled_from([None, 2]))
def test_the_members_of_an_object_are_what_a_decoder_finds(
    value: dict[str, Any], indent: int | None
) -> None:
    body = json.dumps(value, indent=indent).encode()
    found = {json.loads(b'"%s"' % key): json.loads(raw) for key, raw in members(body).items()}
    assert found == value


@given(st.lists(_VALUES))
def test_the_elements_of_an_array_are_what_a_decoder_finds(value: list[Any]) -> None:
    assert [msgspec.json.decode(raw) for raw in elements(json.dumps(value).encode())] == value


@given(st.binary())
def test_nonsense_is_taken_apart_or_refused(body: bytes) -> None:
    for read in (members, elements):
        with contextlib.suppress(ValueError):
            assert len(read(body)) <= len(body)


@pytest.mark.parametrize(
    "body", [b"", b"[", b"{]}", b'{"a":1', b'{"a":"', b'{"a":1}x', b"{1:2}", b'"a"', b"<html>"]
)
def test_what_is_not_whole_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        members(body)


def test_strings_without_an_end_cost_one_pass() -> None:
    with pytest.raises(ValueError, match="no end"):
        elements(b'["' + b'\\"' * 2_000_000)


def test_any_depth_is_taken_apart() -> None:
    deep = b"[" * 300_000 + b"]" * 300_000
    assert members(b'{ "a" : %s , "b":"}" }' % deep) == {b"a": deep, b"b": b'"}"'}
