from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    LifecycleHook,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.decide.pods.build import OWN_SCHEDULER, build_pod
from everynode.decide.pods.name import pod_name
from tests.support.samples import advanced, container, native, revision, template

PIN = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
STANDARD = UpdateStrategy()


def built(ds: DaemonSet, **more: Any) -> dict[str, Any]:
    return build_pod(ds, revision(ds.template, "abc", target_generation=4), "n1", **more)


def gates(body: dict[str, Any]) -> list[str]:
    return [gate["conditionType"] for gate in body["spec"].get("readinessGates", [])]


def test_a_pod_has_the_template_the_hash_and_one_owner() -> None:
    made = msgspec.json.encode(
        {
            "metadata": {
                "labels": {"app": "agent"},
                "annotations": {"note": "x"},
                "finalizers": ["example.io/wait"],
                "creationTimestamp": None,
                "name": "ignored",
            },
            "spec": {"containers": [container()], "newField": {"a": 1}},
        }
    )
    body = built(advanced(made))
    assert (body["apiVersion"], body["kind"]) == ("v1", "Pod")
    assert body["metadata"] == {
        "name": pod_name("agent", "ds-uid", "n1", "abc"),
        "namespace": "system",
        "labels": {"app": "agent", keys.REVISION_HASH: "abc"},
        "annotations": {"note": "x", keys.AUTOSCALER_DAEMON_POD: "true"},
        "finalizers": ["example.io/wait"],
        "ownerReferences": [
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "DaemonSet",
                "name": "agent",
                "uid": "ds-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert body["spec"]["containers"] == [container()]
    assert body["spec"]["newField"] == {"a": 1}


def test_a_native_pod_is_owned_through_apps_v1_and_has_no_gates() -> None:
    body = built(native(template()))
    assert body["metadata"]["ownerReferences"][0]["apiVersion"] == "apps/v1"
    assert gates(body) == []


def test_only_native_pods_carry_the_template_generation_and_that_of_their_revision() -> None:
    # A pod that comes back at an older revision must not pass for an updated one.
    assert built(native(template(), template_generation=9))["metadata"]["labels"] == {
        "app": "agent",
        keys.REVISION_HASH: "abc",
        keys.POD_TEMPLATE_GENERATION: "4",
    }
    leaked = advanced(template(), metadata={"annotations": {keys.TEMPLATE_GENERATION: "4"}})
    assert keys.POD_TEMPLATE_GENERATION not in built(leaked)["metadata"]["labels"]
    untold = build_pod(native(template()), revision(template(), "abc"), "n1")
    assert keys.POD_TEMPLATE_GENERATION not in untold["metadata"]["labels"]


def test_required_node_affinity_is_replaced_by_the_node_and_the_rest_is_kept() -> None:
    affinity = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}, PREFERRED: [{"weight": 1}]},
        "podAffinity": {PREFERRED: []},
    }
    body = built(advanced(template(affinity=affinity)))
    assert body["spec"]["affinity"] == {
        "nodeAffinity": {REQUIRED: PIN, PREFERRED: [{"weight": 1}]},
        "podAffinity": {PREFERRED: []},
    }
    assert "nodeName" not in body["spec"]


def test_without_the_scheduler_the_pod_is_bound_at_once() -> None:
    spec = built(advanced(template()), by_scheduler=False)["spec"]
    assert (spec["nodeName"], spec["schedulerName"]) == ("n1", OWN_SCHEDULER)


@pytest.mark.parametrize(
    ("spec", "count"), [({}, 6), ({"hostNetwork": True}, 7), ({"hostNetwork": False}, 6)]
)
def test_every_pod_gets_the_automatic_tolerations(spec: dict[str, Any], count: int) -> None:
    assert len(built(advanced(template(**spec)))["spec"]["tolerations"]) == count


def test_a_toleration_of_the_template_is_kept_once() -> None:
    mine = {"key": "mine", "operator": "Exists"}
    ours = {"key": keys.TAINT_NOT_READY, "operator": "Exists", "effect": "NoExecute"}
    made = template(tolerations=[mine, {**ours, "tolerationSeconds": 5}])
    tolerations = built(advanced(made))["spec"]["tolerations"]
    assert tolerations[:2] == [mine, ours]
    assert len(tolerations) == 7


HOOK = LifecycleHook(labels={"hook": "yes"})
MARKING = LifecycleHook(labels={"hook": "yes"}, mark_not_ready=True)


@pytest.mark.parametrize(
    ("more", "given", "expected"),
    [
        ({}, [], [keys.INPLACE_UPDATE_READY]),
        ({"strategy": STANDARD}, [], []),
        ({"strategy": STANDARD}, ["mine"], ["mine"]),
        ({"strategy": STANDARD}, [keys.KRUISE_POD_READY], [keys.KRUISE_POD_READY]),
        ({"strategy": UpdateStrategy(type=UpdateStrategyType.ON_DELETE)}, [], []),
        ({"strategy": STANDARD, "pre_delete": HOOK}, [], []),
        ({"strategy": STANDARD, "pre_delete": MARKING}, [], [keys.KRUISE_POD_READY]),
        ({"pre_delete": MARKING}, [], [keys.KRUISE_POD_READY, keys.INPLACE_UPDATE_READY]),
        ({}, ["mine"], ["mine", keys.INPLACE_UPDATE_READY]),
        ({}, [keys.INPLACE_UPDATE_READY], [keys.INPLACE_UPDATE_READY]),
    ],
)
def test_readiness_gates_are_added_once_where_something_uses_them(
    more: dict[str, Any], given: list[str], expected: list[str]
) -> None:
    made = template(readinessGates=[{"conditionType": kind} for kind in given])
    assert gates(built(advanced(made, **more))) == expected


def test_the_count_of_failures_is_carried() -> None:
    annotations = built(advanced(template()), failures="3")["metadata"]["annotations"]
    assert annotations == {keys.FAILURES: "3", keys.AUTOSCALER_DAEMON_POD: "true"}
    assert keys.FAILURES not in built(advanced(template()))["metadata"]["annotations"]


def test_a_cluster_autoscaler_is_told_that_an_advanced_pod_is_a_daemon_pod() -> None:
    assert built(advanced(template()))["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/daemonset-pod": "true"
    }
    assert "annotations" not in built(native(template()))["metadata"]
    said = {"annotations": {keys.AUTOSCALER_DAEMON_POD: "false"}}
    own = msgspec.json.encode({"metadata": said, "spec": {"containers": [container()]}})
    assert built(advanced(own))["metadata"]["annotations"] == said["annotations"]


def test_the_name_follows_what_is_replaced_and_who_is_in_the_way() -> None:
    body = built(advanced(template()), replaced=("a",), name_holders=("b",))
    assert body["metadata"]["name"] == pod_name("agent", "ds-uid", "n1", "abc", ("a",), ("b",))


def test_pods_of_one_revision_differ_only_in_name_and_node() -> None:
    ds = advanced(template(affinity={"nodeAffinity": {PREFERRED: []}}))
    first = built(ds, failures=1)
    second = build_pod(ds, revision(ds.template, "abc"), "n2")
    assert second["spec"]["affinity"]["nodeAffinity"][REQUIRED] != PIN
    assert keys.FAILURES not in second["metadata"]["annotations"]
    assert built(ds, failures=1) == first


def test_parts_of_the_wrong_type_are_left_for_the_api_server_to_refuse() -> None:
    made = template(tolerations="all", readinessGates=["x"], affinity="here")
    spec = built(advanced(made))["spec"]
    assert spec["affinity"] == {"nodeAffinity": {REQUIRED: PIN}}
    assert (spec["tolerations"], spec["readinessGates"]) == ("all", ["x"])
