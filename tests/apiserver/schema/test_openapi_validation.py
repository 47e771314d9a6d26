from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.schema.openapi_validation import Defaulter, validate


def words(value: Any, schema: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in validate(value, {"properties": {"x": schema}})]


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (1, {"type": "string"}, 'x in body must be of type string: "integer"'),
        (True, {"type": "integer"}, 'x in body must be of type integer: "boolean"'),
        (1.5, {"type": "integer"}, 'x in body must be of type integer: "number"'),
        (None, {"type": "string"}, 'x in body must be of type string: "null"'),
        ([], {"x-kubernetes-int-or-string": True}, "must be of type integer,string"),
        ("ab", {"type": "string", "maxLength": 1}, "Too long: may not be more than 1 bytes"),
        ("", {"type": "string", "minLength": 1}, "should be at least 1 chars long"),
        ("b", {"type": "string", "pattern": "^a"}, "should match '^a'"),
        (5, {"type": "integer", "maximum": 4}, "should be less than or equal to 4"),
        (
            4,
            {"type": "integer", "maximum": 4, "exclusiveMaximum": True},
            "should be less than 4",
        ),
        (5, {"type": "integer", "multipleOf": 2}, "should be a multiple of 2"),
        ([1, 2], {"type": "array", "maxItems": 1}, "Too many: 2: must have at most 1 items"),
        ([], {"type": "array", "minItems": 1}, "should have at least 1 items"),
        (["a", "a"], {"type": "array", "x-kubernetes-list-type": "set"}, "x[1]: Duplicate value"),
        (
            [{"n": 1, "v": 1}, {"n": 1, "v": 2}],
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["n"],
            },
            'x[1]: Duplicate value: {"n":1}',
        ),
        ({"a": "b"}, {"additionalProperties": {"type": "integer"}}, "x.a in body must be of type"),
        ([1], {"type": "array", "items": {"type": "string"}}, "x[0]: Invalid value"),
        ({}, {"type": "object", "required": ["y"]}, "x.y: Required value"),
        (1, {"anyOf": [{"minimum": 2}, {"maximum": 0}]}, "at least one schema (anyOf)"),
        (1, {"oneOf": [{"minimum": 0}, {"maximum": 2}]}, "one and only one schema (oneOf)"),
        (1, {"not": {"minimum": 0}}, "must not validate the schema (not)"),
        (5, {"allOf": [{"maximum": 4}]}, "less than or equal to 4"),
    ],
)
def test_what_is_forbidden_is_named(value: Any, schema: dict[str, Any], message: str) -> None:
    [fault] = words({"x": value}, schema)
    assert message in fault


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1.0, {"type": "integer"}),
        (1, {"type": "number"}),
        (None, {"type": "string", "nullable": True}),
        ("5%", {"x-kubernetes-int-or-string": True}),
        ("x", {"type": "string", "pattern": "(?P<broken"}),
        (["a", "b"], {"type": "array", "x-kubernetes-list-type": "set"}),
    ],
)
def test_what_is_allowed_passes(value: Any, schema: dict[str, Any]) -> None:
    assert words({"x": value}, schema) == []


def test_metadata_is_not_validated_by_the_schema() -> None:
    schema = {"properties": {"metadata": {"type": "object", "required": ["nope"]}}}
    assert list(validate({"metadata": {}}, schema)) == []


def filled(value: Any, schema: dict[str, Any]) -> Any:
    filler = Defaulter.from_schema(schema, top=True)
    assert filler is not None
    return filler.apply_defaults(value)


def test_defaults_are_filled_in_at_every_depth() -> None:
    inner = {"properties": {"a": {"default": 1}}}
    schema = {
        "properties": {
            "one": {**inner, "default": {}},
            "many": {"items": inner},
            "named": {"additionalProperties": inner},
            "absent": inner,
        }
    }
    value = {"many": [{}, {"a": 2}], "named": {"k": {}}}
    assert filled(value, schema) == {
        "one": {"a": 1},
        "many": [{"a": 1}, {"a": 2}],
        "named": {"k": {"a": 1}},
    }


def test_null_is_replaced_by_a_default_unless_it_is_allowed() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {"default": 1, "nullable": True}, "c": {}}}
    given = {"a": None, "b": None, "c": None}
    assert filled(given, schema) == {"a": 1, "b": None, "c": None}


def test_default_of_the_schema_is_never_changed_by_an_object() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"default": {"list": []}}}}
    filled({}, schema)["a"]["list"].append(1)
    assert filled({}, schema) == {"a": {"list": []}}
