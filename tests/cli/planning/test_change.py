from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api.keys import LAST_APPLIED
from everynode.cli.planning.change import (
    Flags,
    apply_file,
    apply_flags,
    changed_fields,
    parse_images,
    parse_limit,
)
from everynode.errors import UsageError, UserError
from tests.support.stage import daemonset

Object = dict[str, Any]


def live(manifest: Object, *, last: Object | None = None, **spec: Any) -> Object:
    """A stored DaemonSet: the manifest, what others set in its spec, and kubectl's record."""
    annotations = {LAST_APPLIED: json.dumps(last)} if last is not None else {}
    metadata = {**manifest["metadata"], "uid": "1", "generation": 3, "annotations": annotations}
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], **spec}}


def paths(before: Object, after: Object) -> list[str]:
    return [each.path for each in changed_fields(before, after)]


def test_a_manifest_changes_what_it_says_and_keeps_what_others_set() -> None:
    first = daemonset(rolling={"maxUnavailable": 2})
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "partition": 5}}
    stored = live(first, last=first, updateStrategy=strategy)
    after = apply_file(stored, daemonset(image="agent:v2", rolling={"maxUnavailable": 3}))
    assert after["metadata"] == stored["metadata"] | {"labels": {}}
    assert after["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 3, "partition": 5}
    assert changed_fields(stored, after) == [
        ("template.spec.containers[agent].image", "agent:v1", "agent:v2"),
        ("updateStrategy.rollingUpdate.maxUnavailable", "2", "3"),
    ]


def test_a_field_that_the_manifest_before_had_is_removed() -> None:
    first = daemonset(minReadySeconds=30, template={"spec": {"hostNetwork": True}})
    after = apply_file(live(first, last=first), daemonset())
    assert "minReadySeconds" not in after["spec"]
    assert paths(first, after) == ["minReadySeconds", "template.spec.hostNetwork"]


def test_without_a_record_the_template_is_that_of_the_manifest() -> None:
    first = daemonset(minReadySeconds=30, template={"spec": {"hostNetwork": True}})
    after = apply_file(live(first), daemonset())
    assert paths(first, after) == ["template.spec.hostNetwork"]
    assert paths(first, apply_file(live(first, last={}), daemonset())) == [
        "template.spec.hostNetwork"
    ]


def test_defaults_of_the_api_server_are_no_change() -> None:
    stored = daemonset(template={"spec": {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}})
    assert changed_fields(stored, daemonset()) == []


def test_another_version_of_the_kind_is_converted() -> None:
    stored = live(daemonset())
    after = apply_file(stored, daemonset(api_version="apps.kruise.io/v1alpha1", image="agent:v2"))
    assert after["apiVersion"] == "apps.kruise.io/v1beta1"
    assert paths(stored, after) == ["template.spec.containers[agent].image"]


def test_options_change_images_and_limits() -> None:
    before = daemonset(rolling={"maxUnavailable": 1})
    after = apply_flags(
        before, Flags({"*": "agent:v2"}, {"maxUnavailable": "10%", "partition": "4"})
    )
    assert changed_fields(before, after) == [
        ("template.spec.containers[agent].image", "agent:v1", "agent:v2"),
        ("updateStrategy.rollingUpdate.maxUnavailable", "1", "10%"),
        ("updateStrategy.rollingUpdate.partition", "", "4"),
    ]
    surging = apply_flags(before, Flags({}, {"maxSurge": "2"}))["spec"]["updateStrategy"]
    assert surging["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 2}
    assert apply_flags(before, Flags({}, {})) == before


def test_options_that_mean_nothing_are_refused() -> None:
    for text in ("many", "-1", "5 %", ""):
        with pytest.raises(UsageError, match="give a number of nodes or a percentage"):
            parse_limit("--partition", text)
    for pair in ("agent", "=a", "agent=", "agent=a b"):
        with pytest.raises(UsageError, match="write CONTAINER=IMAGE"):
            parse_images((pair,))
    on_delete = daemonset(updateStrategy={"type": "OnDelete"})
    with pytest.raises(UserError, match="OnDelete, which knows no partition"):
        apply_flags(on_delete, Flags({}, {"partition": "1"}))
    with pytest.raises(UserError, match="is a native DaemonSet"):
        apply_flags(daemonset(api_version="apps/v1"), Flags({}, {"partition": "1"}))
