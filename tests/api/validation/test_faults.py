from __future__ import annotations

import msgspec
import pytest

from everynode.api.daemonset import Fault
from everynode.api.validation import faults


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.invalid("a", "b", "c"), 'a: Invalid value: "b": c'),
        (faults.invalid("a", 5, "c"), "a: Invalid value: 5: c"),
        (faults.invalid("a", True, "c"), "a: Invalid value: true: c"),
        (faults.invalid("a", {"z": 1, "b": 2}, "c"), 'a: Invalid value: {"b":2,"z":1}: c'),
        (faults.invalid("a", msgspec.Raw(b'{"Z":1}'), "c"), 'a: Invalid value: {"Z":1}: c'),
        (faults.invalid("a", faults.OMITTED, "c"), "a: Invalid value: c"),
        (faults.required("a"), "a: Required value"),
        (faults.required("a", "b"), "a: Required value: b"),
        (faults.forbidden("a", "b"), "a: Forbidden: b"),
        (faults.duplicate("a", "b"), 'a: Duplicate value: "b"'),
        (faults.not_found("a", "b"), 'a: Not found: "b"'),
        (faults.too_long("a", 5), "a: Too long: may not be more than 5 bytes"),
        (faults.too_many("a", 9, 5), "a: Too many: 9: must have at most 5 items"),
        (
            faults.unsupported("a", "b", ("c", "d")),
            'a: Unsupported value: "b": supported values: "c", "d"',
        ),
        (
            faults.wrong_type("a", [], "string"),
            'a: Invalid value: "array": a in body must be of type string: "array"',
        ),
    ],
)
def test_a_fault_is_worded_like_the_api_servers(fault: Fault, words: str) -> None:
    assert str(fault) == words


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
    assert faults.json_type(value) == kind


def test_several_faults_are_told_in_one_line_and_doubles_once() -> None:
    one, two = faults.required("a"), faults.required("b")
    assert faults.summarise([one]) == "a: Required value"
    assert faults.summarise([one, two, one]) == "[a: Required value, b: Required value]"
