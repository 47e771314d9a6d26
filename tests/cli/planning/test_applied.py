from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api.keys import LAST_APPLIED
from everynode.cli.planning.applied import apply_manifest
from everynode.cli.planning.change import changed_fields
from everynode.errors import UserError
from tests.support.stage import daemonset

Object = dict[str, Any]
NATIVE = "apps/v1"
ADVANCED = "apps.kruise.io/v1beta1"
SELECTOR: Object = {"f:spec": {"f:selector": {}, "f:minReadySeconds": {}}}


def live(manifest: Object, *, last: Object | None = None, **spec: Any) -> Object:
    """A stored DaemonSet: the manifest, what others set in its spec, and kubectl's record."""
    annotations = {LAST_APPLIED: json.dumps(last)} if last is not None else {}
    metadata = {**manifest["metadata"], "uid": "1", "generation": 3, "annotations": annotations}
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], **spec}}


def with_containers(manifest: Object, *names: str) -> Object:
    containers = [{"name": name, "image": "a:1"} for name in names]
    template = {**manifest["spec"]["template"], "spec": {"containers": containers}}
    return {**manifest, "spec": {**manifest["spec"], "template": template}}


def names(applied: Object) -> list[str]:
    return [each["name"] for each in applied["spec"]["template"]["spec"]["containers"]]


def entry(manager: str, operation: str, fields: Object, version: str = ADVANCED) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def managed(stored: Object, *entries: Object) -> Object:
    return {**stored, "metadata": {**stored["metadata"], "managedFields": [*entries]}}


def test_a_manifest_changes_what_it_says_and_keeps_what_others_set() -> None:
    first = daemonset(rolling={"maxUnavailable": 2})
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "partition": 5}}
    stored = live(first, last=first, updateStrategy=strategy)
    after = apply_manifest(stored, daemonset(image="agent:v2", rolling={"maxUnavailable": 3}))
    assert after["metadata"] == stored["metadata"]
    assert after["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 3, "partition": 5}
    assert changed_fields(stored, after) == [
        ("template.spec.containers[agent].image", "agent:v1", "agent:v2"),
        ("updateStrategy.rollingUpdate.maxUnavailable", "2", "3"),
    ]


def test_a_field_that_the_manifest_before_had_is_removed() -> None:
    first = daemonset(minReadySeconds=30, template={"spec": {"hostNetwork": True}})
    for version in (NATIVE, ADVANCED):
        before = {**first, "apiVersion": version}
        after = apply_manifest(live(before, last=before), daemonset(api_version=version))
        assert "minReadySeconds" not in after["spec"]
        assert [each.path for each in changed_fields(first, after)] == [
            "minReadySeconds",
            "template.spec.hostNetwork",
        ]


def test_items_that_others_added_to_a_native_set_stay_where_they_are() -> None:
    first = with_containers(daemonset(api_version=NATIVE), "agent", "old")
    stored = with_containers(live(first, last=first), "injected", "agent", "old", "late")
    applied = apply_manifest(stored, with_containers(first, "agent", "new"))
    assert names(applied) == ["injected", "agent", "late", "new"]


def test_lists_of_the_advanced_kind_are_those_of_the_manifest_as_kubectl_applies_them() -> None:
    first = with_containers(daemonset(), "agent")
    stored = with_containers(live(first, last=first), "injected", "agent")
    assert names(apply_manifest(stored, first)) == ["agent"]


def test_ports_of_the_same_number_stay_two() -> None:
    ports = [{"containerPort": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    first = daemonset(
        api_version=NATIVE,
        template={"spec": {"containers": [{"name": "dns", "image": "a:1", "ports": ports}]}},
    )
    stored = live(first, last=first)
    assert changed_fields(stored, apply_manifest(stored, first)) == []


def test_without_any_record_nothing_is_removed() -> None:
    first = daemonset(api_version=NATIVE, template={"spec": {"hostNetwork": True}})
    records: tuple[Object | None, ...] = (None, {})
    for last in records:
        stored = with_containers(live(first, last=last), "agent", "injected")
        assert names(apply_manifest(stored, daemonset(api_version=NATIVE))) == ["agent", "injected"]


@pytest.mark.parametrize(("manager", "operation"), [("argocd", "Apply"), ("helm", "Update")])
def test_what_its_manager_declared_before_and_no_more_is_removed(
    manager: str, operation: str
) -> None:
    declared = entry(manager, operation, SELECTOR)
    stored = managed(live(daemonset(minReadySeconds=30, revisionHistoryLimit=3)), declared)
    after = apply_manifest(stored, daemonset())
    assert [each.path for each in changed_fields(stored, after)] == ["minReadySeconds"]


@pytest.mark.parametrize(
    "other",
    [
        entry("sidecars", "Apply", {"f:spec": {"f:minReadySeconds": {}}}),
        entry("kubectl-edit", "Update", SELECTOR),
    ],
)
def test_who_does_not_declare_the_whole_object_loses_nothing(other: Object) -> None:
    stored = managed(live(daemonset(minReadySeconds=30)), other)
    assert changed_fields(stored, apply_manifest(stored, daemonset())) == []


def test_the_last_declaration_counts() -> None:
    by_kubectl = entry("kubectl-client-side-apply", "Update", {"f:spec": {"f:selector": {}}})
    by_argo = entry("argocd", "Apply", SELECTOR)
    # kubectl's record is of a manifest that did not say minReadySeconds.
    stored = live(daemonset(minReadySeconds=30), last=daemonset())
    for earlier, later, removed in (
        (by_kubectl, by_argo, ["minReadySeconds"]),
        (by_argo, by_kubectl, []),
    ):
        held = managed(stored, {**later, "time": "2026-01-02"}, {**earlier, "time": "2026-01-01"})
        changes = changed_fields(held, apply_manifest(held, daemonset()))
        assert [each.path for each in changes] == removed


def test_another_version_of_the_kind_is_converted() -> None:
    stored = live(daemonset())
    other = daemonset(api_version="apps.kruise.io/v1alpha1", image="agent:v2")
    after = apply_manifest(stored, other)
    assert after["apiVersion"] == ADVANCED
    assert [each.path for each in changed_fields(stored, after)] == [
        "template.spec.containers[agent].image"
    ]


def test_what_no_server_would_apply_is_refused() -> None:
    stored = managed(live(daemonset()), entry("argocd", "Apply", SELECTOR))
    twice = with_containers(daemonset(), "agent", "agent")
    with pytest.raises(UserError, match=r"the new version is refused: .*duplicate"):
        apply_manifest(stored, twice)
