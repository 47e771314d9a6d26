from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.schema.fast_check import fast_check_for
from everynode.apiserver.schema.field_validation import convert_object as read
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.schema.openapi_validation import validate

CONDITION = {
    "type": "object",
    "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
    "required": ["type"],
}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ready": {"type": "integer", "format": "int32"},
        "share": {"type": "number"},
        "done": {"type": "boolean"},
        "conditions": {
            "type": "array",
            "items": CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "notes": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["ready"],
}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.sampled_from("ab")
CONDITIONS = st.dictionaries(st.sampled_from(["type", "status", "x"]), SCALARS, max_size=2)
MEMBERS = SCALARS | st.lists(SCALARS | CONDITIONS, max_size=3)
VALUES = st.dictionaries(st.sampled_from([*STATUS["properties"], "other"]), MEMBERS, max_size=4)


@pytest.mark.parametrize(
    ("status", "fits"),
    [
        ({"ready": 1}, True),
        ({"ready": 1, "share": 1, "done": False, "notes": ["a", "a"]}, True),
        ({"ready": 1, "conditions": [{"type": "a"}, {"type": "b", "status": "True"}]}, True),
        ({}, False),
        ({"ready": True}, False),
        ({"ready": 1, "done": 1}, False),
        ({"ready": 1, "done": None}, False),
        ({"ready": 1, "other": 1}, False),
        ({"ready": 1, "conditions": [{"status": "True"}]}, False),
        ({"ready": 1, "conditions": [{"type": "a", "more": 1}]}, False),
        ({"ready": 1, "conditions": [{"type": "a"}, {"type": "a"}]}, False),
        (None, False),
    ],
)
def test_plain_values_fit_at_once(status: Any, fits: bool) -> None:
    fit = fast_check_for(STATUS)
    assert fit is not None
    assert fit.accepts(status) is fits


@given(VALUES | SCALARS)
def test_what_fits_at_once_also_passes_the_closer_look(status: Any) -> None:
    fit = fast_check_for(STATUS)
    assert fit is not None
    if fit.accepts(status):
        assert not list(validate(status, STATUS))
        whole = {"type": "object", "properties": {"status": {**STATUS, "maxProperties": 99}}}
        assert read({"status": status}, ObjectType(schema=whole)) == ({"status": status}, [])


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["b"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": True}}},
        {"type": "object", "properties": {"a": STATUS}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": CONDITION, "x-kubernetes-list-type": "set"}
            },
        },
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": "array",
                    "items": CONDITION,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type", "status"],
                }
            },
        },
    ],
)
def test_schemas_that_say_more_have_no_quick_answer(schema: dict[str, Any]) -> None:
    assert fast_check_for(schema) is None
