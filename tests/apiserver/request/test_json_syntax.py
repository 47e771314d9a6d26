from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.request.json_syntax import (
    JsonSyntaxError,
    duplicate_keys,
    may_have_duplicate_keys,
    parse_json,
    parse_pairs,
)


# As kube-apiserver v1.36.3 words them.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ('{"a":"', "unexpected end of JSON input"),
        ("{not json", "invalid character 'n' looking for beginning of object key string"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":["]",1 2]}', "invalid character '2' after array element"),
        ('{"a":1}x', "invalid character 'x' after top-level value"),
        ('{"a":x}', "invalid character 'x' looking for beginning of value"),
        ("nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        ('{"a":tru', "unexpected end of JSON input"),
        ('{"a":"\t"}', r"invalid character '\t' in string literal"),
    ],
)
def test_what_is_no_json_is_refused_in_the_real_server_s_words(text: str, message: str) -> None:
    with pytest.raises(JsonSyntaxError) as refused:
        parse_json(text.encode())
    assert str(refused.value) == message


def test_bytes_that_are_no_text_become_the_sign_for_that() -> None:
    assert parse_json(b'{"a":"\xff"}') == {"a": "\ufffd"}
    assert duplicate_keys(parse_pairs(b'{"a":"\xff","a":1}')) == ["a"]


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(JsonSyntaxError, match="depth"):
        parse_json(b"[" * 100_000 + b"]" * 100_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_a_body_without_duplicate_keys_is_rarely_suspected(value: object, compact: bool) -> None:
    body = json.dumps(value, indent=None if compact else 2).encode()
    if b"\\u0022" not in body:
        assert not may_have_duplicate_keys(body, parse_json(body))


@given(st.text(), JSON, JSON)
def test_duplicate_keys_are_always_suspected(key: str, first: object, second: object) -> None:
    name = json.dumps(key)
    body = f'{{"x":{{{name}:{json.dumps(first)},{name}:{json.dumps(second)}}}}}'.encode()
    assert may_have_duplicate_keys(body, parse_json(body))
    assert duplicate_keys(parse_pairs(body))[0].startswith("x.")


def test_duplicates_are_named_once_in_the_order_written() -> None:
    text = b'{"a":{"b":1,"c":[{"d":1,"d":2}],"b":2,"b":3},"e":1,"a":0}'
    assert duplicate_keys(parse_pairs(text)) == ["a.c[0].d", "a.b", "a"]
