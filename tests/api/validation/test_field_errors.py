from __future__ import annotations

import msgspec
import pytest

from everynode.api.daemonset import FieldError
from everynode.api.validation import field_errors


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (field_errors.invalid("a", "b", "c"), 'a: Invalid value: "b": c'),
        (field_errors.invalid("a", 5, "c"), "a: Invalid value: 5: c"),
        (field_errors.invalid("a", True, "c"), "a: Invalid value: true: c"),
        (field_errors.invalid("a", {"z": 1, "b": 2}, "c"), 'a: Invalid value: {"b":2,"z":1}: c'),
        (field_errors.invalid("a", msgspec.Raw(b'{"Z":1}'), "c"), 'a: Invalid value: {"Z":1}: c'),
        (field_errors.invalid("a", field_errors.OMITTED, "c"), "a: Invalid value: c"),
        (field_errors.required("a"), "a: Required value"),
        (field_errors.required("a", "b"), "a: Required value: b"),
        (field_errors.forbidden("a", "b"), "a: Forbidden: b"),
        (field_errors.duplicate("a", "b"), 'a: Duplicate value: "b"'),
        (field_errors.not_found("a", "b"), 'a: Not found: "b"'),
        (field_errors.too_long("a", 5), "a: Too long: may not be more than 5 bytes"),
        (field_errors.too_many("a", 9, 5), "a: Too many: 9: must have at most 5 items"),
        (
            field_errors.unsupported("a", "b", ("c", "d")),
            'a: Unsupported value: "b": supported values: "c", "d"',
        ),
        (
            field_errors.wrong_type("a", [], "string"),
            'a: Invalid value: "array": a in body must be of type string: "array"',
        ),
    ],
)
def test_a_field_error_reads_like_the_api_servers(error: FieldError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
        (None, "null"),
    ],
)
def test_types_have_the_names_of_json_schema(value: object, kind: str) -> None:
    assert field_errors.json_type(value) == kind


def test_several_errors_are_printed_in_one_line_without_duplicates() -> None:
    one, two = field_errors.required("a"), field_errors.required("b")
    assert field_errors.summarise([one]) == "a: Required value"
    assert field_errors.summarise([one, two, one]) == "[a: Required value, b: Required value]"
