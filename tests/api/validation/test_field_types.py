from __future__ import annotations

from typing import Any

import pytest

from everynode.api.types import ADVANCED_SPEC, OBJECT_META, POD
from everynode.api.validation import check_field_types, unknown_fields
from everynode.api.validation.field_types import check_advanced_field_types

Object = dict[str, Any]


def pod(**container: Any) -> Object:
    return {"spec": {"containers": [{"name": "a"} | container]}}


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"image": 5}, "image"),
        ({"stdin": "yes"}, "stdin"),
        ({"stdin": 1}, "stdin"),
        ({"command": "ls"}, "command"),
        ({"command": ["ls", 1]}, "command[1]"),
        ({"env": {"A": "b"}}, "env"),
        ({"env": ["A"]}, "env[0]"),
        ({"ports": [{"containerPort": "80"}]}, "ports[0].containerPort"),
        ({"ports": [{"containerPort": True}]}, "ports[0].containerPort"),
        ({"ports": [{"containerPort": 2**31}]}, "ports[0].containerPort"),
        ({"livenessProbe": {"tcpSocket": {"port": 1.5}}}, "livenessProbe.tcpSocket.port"),
        ({"livenessProbe": {"tcpSocket": {"port": 2**31}}}, "livenessProbe.tcpSocket.port"),
        ({"resources": {"limits": {"cpu": "lots"}}}, "resources.limits.cpu"),
        ({"resources": {"limits": {"cpu": True}}}, "resources.limits.cpu"),
        ({"resources": {"limits": []}}, "resources.limits"),
    ],
)
def test_a_value_of_the_wrong_type_is_reported(container: Object, path: str) -> None:
    errors = [error.path for error in check_field_types(pod(**container), POD)]
    assert errors == [f"spec.containers[0].{path}"]


def test_null_is_absent() -> None:
    nulls = pod(image=None, env=None, resources={"limits": {"cpu": None}})
    assert list(check_field_types(nulls, POD)) == []


def test_a_time_is_a_text() -> None:
    assert list(check_field_types({"creationTimestamp": "2026-01-01T00:00:00Z"}, OBJECT_META)) == []
    (error,) = check_field_types({"creationTimestamp": 5}, OBJECT_META, "metadata")
    assert str(error) == (
        'metadata.creationTimestamp: Invalid value: "integer": metadata.creationTimestamp in body '
        'must be of type string: "integer"'
    )


def test_unknown_fields_are_no_matter_of_type() -> None:
    assert list(check_field_types(pod(newer={"a": 1}), POD)) == []


def test_unknown_fields_are_found_at_any_depth() -> None:
    manifest = pod(imag="a", env=[{"name": "A", "valu": "b"}], resources={"limit": {}})
    manifest["spec"]["nodeSelector"] = {"anything": "goes"}
    manifest["metadata"] = {"nam": "x", "labels": {"any": "thing"}}
    assert sorted(field.path for field in unknown_fields(manifest, POD)) == [
        "metadata.nam",
        "spec.containers[0].env[0].valu",
        "spec.containers[0].imag",
        "spec.containers[0].resources.limit",
    ]


def test_a_status_may_hold_what_it_likes_in_a_map_of_objects() -> None:
    claim = {"status": {"resourceClaimStatuses": [{"name": "a", "nam": "b"}]}}
    assert list(unknown_fields(claim, POD)) == [("status.resourceClaimStatuses[0].nam", "name")]
    assert list(unknown_fields([], POD)) == []


def test_the_advanced_kind_requires_what_its_schema_requires() -> None:
    errors = check_advanced_field_types(
        {"selector": {"matchExpressions": [{}]}}, ADVANCED_SPEC, "spec"
    )
    assert [str(error) for error in errors] == [
        "spec.selector.matchExpressions[0].key: Required value",
        "spec.selector.matchExpressions[0].operator: Required value",
        "spec.template: Required value",
    ]
