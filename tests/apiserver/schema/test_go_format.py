from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.schema.go_format import format_go_syntax, format_value, go_type_name, quote


@pytest.mark.parametrize(
    ("value", "shown", "written", "kind"),
    [
        ("x", "x", '"x"', "string"),
        (3, "3", "3", "int64"),
        (3.0, "3", "3", "float64"),
        (1.5, "1.5", "1.5", "float64"),
        (True, "true", "true", "bool"),
        (None, "<nil>", "<nil>", "<nil>"),
        ([1, "a"], "[1 a]", '[]interface {}{1, "a"}', "[]interface {}"),
        (
            {"b": 1, "a": {}},
            "map[a:map[] b:1]",
            'map[string]interface {}{"a":map[string]interface {}{}, "b":1}',
            "map[string]interface {}",
        ),
    ],
)
def test_values_are_shown_as_in_the_real_server_s_messages(
    value: Any, shown: str, written: str, kind: str
) -> None:
    assert (format_value(value), format_go_syntax(value), go_type_name(value)) == (
        shown,
        written,
        kind,
    )


def test_quotes_are_escaped() -> None:
    assert quote('a"b\n') == r'"a\"b\n"'
    assert quote("\x00") == r'"\x00"'
