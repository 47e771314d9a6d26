from __future__ import annotations

from typing import Any

import pytest

from everynode.api.validation import check_metadata, check_metadata_update
from everynode.api.validation.names import dns_label

Object = dict[str, Any]
OLD: Object = {"name": "a", "namespace": "b", "uid": "u", "generation": 2, "finalizers": ["x/y"]}


def paths(metadata: Object, **options: Any) -> list[str]:
    return [error.path for error in check_metadata(metadata, **options)]


def test_a_name_may_be_generated() -> None:
    assert paths({"generateName": "agent-"}) == []
    assert paths({"generateName": "Agent-"}) == ["metadata.generateName"]
    assert paths({}) == ["metadata.name"]


def test_some_kinds_have_stricter_names() -> None:
    assert paths({"name": "a.b"}) == []
    assert paths({"name": "a.b"}, name_rule=dns_label) == ["metadata.name"]


def test_a_namespace_belongs_to_namespaced_kinds_only() -> None:
    assert paths({"name": "a", "namespace": "b"}) == []
    assert paths({"name": "a", "namespace": "B"}) == ["metadata.namespace"]
    assert paths({"name": "a", "namespace": "b"}, namespaced=False) == ["metadata.namespace"]


def test_only_custom_kinds_may_have_any_finalizer() -> None:
    assert paths({"name": "a", "finalizers": ["mine"]}) == ["metadata.finalizers[0]"]
    assert paths({"name": "a", "finalizers": ["mine"]}, custom=True) == []


def test_annotations_may_have_capitals_in_their_prefix() -> None:
    assert paths({"name": "a", "annotations": {"Example.com/a": "b"}}) == []
    assert paths({"name": "a", "labels": {"Example.com/a": "b"}}) == ["metadata.labels"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": "z"}, "metadata.name"),
        ({"namespace": "z"}, "metadata.namespace"),
        ({"uid": "z"}, "metadata.uid"),
        ({"generation": 1}, "metadata.generation"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"finalizers": ["mine"]}, "metadata.finalizers[0]"),
    ],
)
def test_a_change_is_reported_where_it_is_not_allowed(change: Object, path: str) -> None:
    assert [error.path for error in check_metadata_update(OLD, OLD | change)] == [path]


def test_labels_may_change() -> None:
    assert list(check_metadata_update(OLD, OLD | {"labels": {"a": "b"}, "generation": 3})) == []


def test_an_object_at_its_end_gets_no_new_finalizers() -> None:
    ending = OLD | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert list(check_metadata_update(ending, ending | {"finalizers": []})) == []
    (error,) = check_metadata_update(ending, ending | {"finalizers": ["x/y", "b/c", "a/b"]})
    assert error.reason == "FieldValueForbidden"
    assert error.message.endswith('found new finalizers []string{"a/b", "b/c"}')
