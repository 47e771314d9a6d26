from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.validation import summarise, validate_daemonset, validate_update
from everynode.api.validation.daemonset import validate_advanced_on_server
from tests.support.manifest_corpus import INVALID, VALID, Case, daemonset, rolling, template

Object = dict[str, Any]


@pytest.mark.parametrize("case", VALID, ids=repr)
def test_what_is_right_is_accepted(case: Case) -> None:
    assert validate_daemonset(case.manifest) == []


@pytest.mark.parametrize("case", INVALID, ids=repr)
def test_what_is_wrong_is_reported_at_its_field(case: Case) -> None:
    errors = validate_daemonset(case.manifest)
    assert tuple(error.path for error in errors) == case.refused_at
    assert all(error.message and error.reason.startswith("FieldValue") for error in errors)


@pytest.mark.parametrize("case", VALID[::9] + INVALID[::9], ids=repr)
def test_validation_leaves_the_manifest_alone(case: Case) -> None:
    before = copy.deepcopy(case.manifest)
    validate_daemonset(case.manifest)
    assert case.manifest == before


def test_faults_read_like_the_api_servers() -> None:
    manifest = daemonset(
        keys.V1BETA1, **rolling(maxUnavailable=1, maxSurge="x%"), minReadySeconds=-1
    )
    assert summarise(validate_daemonset(manifest)) == (
        "[spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0, "
        'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "x%": a valid percent string '
        "must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
        "validation is '[0-9]+%'), "
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: may not be set when "
        "maxUnavailable is non-zero]"
    )


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ({}, "apiVersion"),
        ({"apiVersion": "apps/v2", "kind": "DaemonSet"}, "apiVersion"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "kind"),
        ({"apiVersion": keys.V1BETA1, "kind": "DaemonSet", "metadata": {"name": "a"}}, "spec"),
        ([], ""),
        (None, ""),
    ],
)
def test_what_is_no_daemonset_is_reported(manifest: object, path: str) -> None:
    assert [error.path for error in validate_daemonset(manifest)] == [path]


@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1])
def test_the_selector_never_changes(version: str) -> None:
    old = daemonset(version)
    new = daemonset(version, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})
    assert validate_update(old, daemonset(version, minReadySeconds=5)) == []
    (error,) = validate_update(old, new)
    assert error.path == "spec.selector"
    assert error.message.endswith("field is immutable")


def test_an_empty_part_of_a_native_selector_is_no_change() -> None:
    selector = {"matchLabels": {"app": "agent"}, "matchExpressions": []}
    assert (
        validate_update(daemonset(keys.APPS_V1), daemonset(keys.APPS_V1, selector=selector)) == []
    )


def test_a_template_with_a_deadline_is_refused_by_the_definition() -> None:
    manifest = daemonset(keys.V1BETA1, template=template(activeDeadlineSeconds=5))
    (fault,) = validate_advanced_on_server(manifest)
    assert (fault.path, fault.message) == (
        "spec.template.spec.activeDeadlineSeconds",
        "Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
    )


@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1BETA1])
def test_an_update_is_validated_like_a_new_object(version: str) -> None:
    new = daemonset(version, minReadySeconds=-1, metadata={"name": "other"})
    errors = validate_update(daemonset(version), new)
    assert [error.path for error in errors] == ["metadata.name", "spec.minReadySeconds"]
    broken = daemonset(version, minReadySeconds="5")
    assert [f.path for f in validate_update(daemonset(version), broken)] == ["spec.minReadySeconds"]
    assert [f.path for f in validate_update(daemonset(version), {})] == ["apiVersion"]


def test_a_write_to_the_object_does_not_change_its_status() -> None:
    manifest = daemonset(keys.V1BETA1) | {"status": {"numberReady": "many"}}
    assert validate_daemonset(manifest) == []


def test_a_missing_template_is_reported_for_both_kinds() -> None:
    native = daemonset(keys.APPS_V1, template=None)
    assert {error.path for error in validate_daemonset(native)} == {
        "spec.template.metadata.labels",
        "spec.template.spec.containers",
    }
    advanced = daemonset(keys.V1BETA1, template=None)
    assert [error.path for error in validate_daemonset(advanced)] == ["spec.template"]


# --- Nothing is too broken to be validated-----------------------------------------------------

_NAMES = sorted(
    {
        name
        for case in (*VALID, *INVALID)
        for name in json.dumps(case.manifest).replace("{", "").split('"')[1::2]
        if name.isidentifier()
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70000) | st.text(max_size=4) | st.floats(-1, 1),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
    ),
    max_leaves=15,
)


def replace_one(value: Any, draw: st.DrawFn) -> Any:
    """The same manifest with one value replaced by anything."""
    if isinstance(value, dict) and value and draw(st.booleans() | st.just(True)):
        name = draw(st.sampled_from(sorted(value)))
        return value | {name: replace_one(value[name], draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        return [replace_one(value[0], draw), *value[1:]]
    return draw(JSON)


@st.composite
def broken_manifests(draw: st.DrawFn) -> Object:
    case = draw(st.sampled_from((*VALID, *INVALID)))
    made: Object = case.manifest | {"spec": replace_one(case.manifest["spec"], draw)}
    return made


@given(broken_manifests())
def test_a_fault_is_never_an_exception(manifest: Object) -> None:
    for error in validate_daemonset(manifest):
        assert error.path
        assert error.message
    validate_update(daemonset(keys.V1BETA1), manifest)
    validate_update(daemonset(keys.APPS_V1, template=template()), manifest)
