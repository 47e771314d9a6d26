from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.request.yaml_body import YamlBodyError, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: -1", {"a": -1}),
        ("a: 0644", {"a": 420}),
        ("a: 0x1f", {"a": 31}),
        ("a: 1_000", {"a": 1000}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1e3", {"a": 1000}),
        ("a: 1.0", {"a": 1}),
        ("a: 12:30", {"a": "12:30"}),
        ("a: 1.2.3", {"a": "1.2.3"}),
        ("a: '1'", {"a": "1"}),
        ('a: "true"', {"a": "true"}),
        ("a: yes", {"a": True}),
        ("a: Off", {"a": False}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 2026-01-01T00:00:00Z", {"a": "2026-01-01T00:00:00Z"}),
        ("a: .5", {"a": 0.5}),
        ("1: a", {"1": "a"}),
        ("true: a", {"true": "a"}),
        ("y: n", {"true": False}),
        ("a: !!str 3", {"a": "3"}),
        ("[1, {b: c}]", [1, {"b": "c"}]),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("x: &x {a: 1}\nz: *x\n", {"x": {"a": 1}, "z": {"a": 1}}),
        (
            "x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  b: 3\n",
            {"x": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}},
        ),
        ('{"a": {"b": [1, "x", null, true]}}', {"a": {"b": [1, "x", None, True]}}),
        ("", None),
    ],
)
def test_yaml_is_read_as_json_values(text: str, value: Any) -> None:
    assert parse_yaml(text.encode()) == (value, [])


def test_duplicate_keys_are_named_with_their_line() -> None:
    value, twice = parse_yaml(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert value == {"a": 3, "b": {"c": 2}}
    assert twice == ['line 4: key "c" already set in map', 'line 5: key "a" already set in map']


@pytest.mark.parametrize(
    "text", [b"{not: [yaml", b"a: b: c", b"\xff", b"a: *unknown", b"- a\nb: c"]
)
def test_what_is_no_yaml_is_refused(text: bytes) -> None:
    with pytest.raises(YamlBodyError, match="yaml"):
        parse_yaml(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 100_000, "yaml: line 1: exceeded max depth of 200"),
        (b"- " * 50_000 + b"a", "yaml: line 1: exceeded max depth of 200"),
        (
            b"a: &a [x, x]\n" + b"b: &b [" + b"*a, " * 900_000 + b"]",
            "yaml: it is longer than 3145728 bytes",
        ),
        (
            b"a: &a [%s]\nb: &b [%s]\nc: [%s]" % (b"x, " * 999, b"*a, " * 999, b"*b, " * 999),
            "yaml: line 3: document contains excessive aliasing",
        ),
        (b"&a [*a]", "yaml: line 1: anchor 'a' value contains itself"),
        (b"a: 1e999", "json: unsupported value: 1e999"),
        (b"a: " + b"1" * 5_000, "json: unsupported value: 11111111111111111111..."),
        (b"a: \xff", "yaml: invalid UTF-8"),
    ],
)
def test_what_would_exhaust_the_server_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(YamlBodyError) as caught:
        parse_yaml(text)
    assert str(caught.value) == message
