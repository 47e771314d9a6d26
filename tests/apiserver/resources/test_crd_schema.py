from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.resources.crd_schema import (
    SchemaTypeError,
    normalise_schema,
    schema_faults,
)


def faults(spec: Any) -> list[str]:
    schema = {"type": "object", "properties": {"spec": spec}}
    return [str(fault) for fault in schema_faults(normalise_schema(schema), "s")]


LIST = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "s.properties[spec].type: Required value: must not be empty for specified object"),
        (None, "s.properties[spec].type: Required value: must not be empty for specified object"),
        ({"type": "foo"}, 's.properties[spec].type: Unsupported value: "foo"'),
        ({"$ref": "#"}, "s.properties[spec].$ref: Forbidden: $ref is not supported"),
        ({"type": "array"}, "s.properties[spec].items: Required value: must be specified"),
        ({"type": "array", "items": True}, "s.properties[spec].items: Required value"),
        (
            {"type": "array", "items": [{"type": "string"}]},
            "s.properties[spec].items: Forbidden: items must be a schema object and not an array",
        ),
        ({"type": "string", "pattern": "("}, "must be a valid regular expression, but isn't"),
        ({"type": "string", "anyOf": [{"type": "string"}]}, "must be empty to be structural"),
        ({"type": "integer", "default": "x"}, "s.properties[spec].default: Invalid value"),
        ({"type": "object", "default": {"a": 1}}, "must not have unknown fields"),
        ({**LIST, "x-kubernetes-list-type": "odd"}, "Unsupported value"),
        ({**LIST, "x-kubernetes-list-type": "map"}, "must not be empty if x-kubernetes-list-type"),
        ({**LIST, "x-kubernetes-list-type": "set"}, "must be atomic as item of a list"),
    ],
)
def test_a_schema_that_cannot_be_served_is_refused(spec: Any, words: str) -> None:
    assert any(words in fault for fault in faults(spec)), faults(spec)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "object", "properties": None},
        {"type": "object", "allOf": [None]},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {"a": 1}},
    ],
)
def test_odd_schemas_that_the_real_server_takes_are_taken(spec: Any) -> None:
    assert faults(spec) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "array", "items": {"type": 5}},
        {"type": "array", "items": [5]},
        {"type": "object", "additionalProperties": "x"},
        {"type": "object", "additionalProperties": {"minLength": "x"}},
    ],
)
def test_values_of_the_wrong_type_are_found_where_several_types_may_be(spec: Any) -> None:
    with pytest.raises(SchemaTypeError):
        faults(spec)
