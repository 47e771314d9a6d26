from __future__ import annotations

import msgspec
import pytest

from everynode.apiserver.storage.stored_body import in_kubernetes_order
from tests.support.api_client import (
    CORE,
    MAPS,
    PODS,
    SETS,
    Cluster,
    bound,
    config_map,
    daemonset,
    pod,
)


async def test_deleting_answers_with_what_is_gone(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a"))
    answer = await cluster.delete(f"{MAPS}/a")
    assert answer.body["status"] == "Success"
    assert answer.body["details"] == {
        "name": "a",
        "kind": "configmaps",
        "uid": made["metadata"]["uid"],
    }
    assert (await cluster.delete(f"{MAPS}/a")).status == 404


@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Foreground"}])
async def test_pod_that_is_to_end_differs_in_its_metadata_alone(
    cluster: Cluster, options: dict[str, object]
) -> None:
    metadata = {"name": "p", "labels": {"metadata": "x"}, "annotations": {"a": '"metadata":{'}}
    before = await cluster.create(PODS, {**bound("p"), "metadata": metadata})
    answer = await cluster.delete(f"{PODS}/p", options)
    after = answer.body
    assert answer.raw == msgspec.json.encode(
        in_kubernetes_order(after)
    )  # every member is in its place
    assert {**after, "metadata": None} == {**before, "metadata": None}
    assert {**after["metadata"], **before["metadata"]} == {
        **before["metadata"],
        "deletionTimestamp": after["metadata"]["deletionTimestamp"],
        "deletionGracePeriodSeconds": 30,
        **({"finalizers": ["foregroundDeletion"]} if options else {}),
    }


async def test_running_pod_gets_time_to_end(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    answer = await cluster.delete(f"{PODS}/p")
    meta = answer.body["metadata"]
    assert answer.body["kind"] == "Pod"
    assert meta["deletionGracePeriodSeconds"] == 30
    assert meta["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    assert meta["generation"] == 2
    assert (await cluster.get(f"{PODS}/p")).status == 200


async def test_pod_without_a_node_goes_at_once(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p"))
    watch = await cluster.watch(f"{PODS}?resourceVersion={cluster.api.store.version}")
    answer = await cluster.delete(f"{PODS}/p")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await cluster.get(f"{PODS}/p")).status == 404
    # Watchers see it marked before they see it gone.
    assert await watch.events(2) == [("MODIFIED", "p"), ("DELETED", "p")]


async def test_finished_pod_goes_at_once(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    await cluster.patch(f"{PODS}/p/status", {"status": {"phase": "Failed"}})
    await cluster.delete(f"{PODS}/p")
    assert (await cluster.get(f"{PODS}/p")).status == 404


async def test_only_a_shorter_time_has_an_effect(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": 20})
    longer = await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": 25})
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 20
    cluster.clock.seconds += 3
    shorter = await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": 1})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 1
    # Counted from the first deletion, but never into the past.
    assert shorter.body["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:23Z"
    assert shorter.body["metadata"]["generation"] == 2


async def test_kubelet_ends_a_pod_with_zero_seconds(cluster: Cluster) -> None:
    made = await cluster.create(PODS, bound("p"))
    await cluster.delete(f"{PODS}/p")
    uid = {"uid": made["metadata"]["uid"]}
    answer = await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": 0, "preconditions": uid})
    assert answer.status == 200
    assert (await cluster.get(f"{PODS}/p")).status == 404


async def test_pod_with_a_finalizer_waits_for_both(cluster: Cluster) -> None:
    body = bound("p")
    body["metadata"]["finalizers"] = ["x.io/wait"]
    await cluster.create(PODS, body)
    await cluster.delete(f"{PODS}/p")
    await cluster.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert (await cluster.get(f"{PODS}/p")).status == 200
    await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await cluster.get(f"{PODS}/p")).status == 404


@pytest.mark.parametrize(
    ("preconditions", "words"),
    [
        ({"uid": "other"}, "the UID in the precondition (other) does not match the UID in record"),
        (
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion",
        ),
    ],
)
async def test_unmet_precondition_deletes_nothing(
    cluster: Cluster, preconditions: dict[str, str], words: str
) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.delete(f"{MAPS}/a", {"preconditions": preconditions})
    assert answer.status == 409
    assert words in answer.message
    assert (await cluster.get(f"{MAPS}/a")).status == 200


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
async def test_owner_that_waits_for_the_collector_is_kept_with_a_finalizer(
    cluster: Cluster, policy: str, finalizer: str
) -> None:
    await cluster.create(SETS, daemonset("d"))
    answer = await cluster.delete(f"{SETS}/d", {"propagationPolicy": policy})
    meta = answer.body["metadata"]
    assert meta["finalizers"] == [finalizer]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == 2


async def test_background_deletion_is_the_default(cluster: Cluster) -> None:
    await cluster.create(SETS, daemonset("d"))
    answer = await cluster.delete(f"{SETS}/d")
    assert answer.body["details"]["kind"] == "daemonsets"
    assert (await cluster.get(f"{SETS}/d")).status == 404


async def test_a_second_delete_may_change_the_propagation_policy(cluster: Cluster) -> None:
    await cluster.create(SETS, daemonset("d"))
    await cluster.delete(f"{SETS}/d", {"propagationPolicy": "Foreground"})
    await cluster.delete(f"{SETS}/d", {"propagationPolicy": "Background"})
    assert (await cluster.get(f"{SETS}/d")).status == 404


@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": "Foo"},
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"dryRun": ["Some"]},
    ],
)
async def test_options_that_make_no_sense_are_refused(
    cluster: Cluster, options: dict[str, object]
) -> None:
    await cluster.create(MAPS, config_map("a"))
    assert (await cluster.delete(f"{MAPS}/a", options)).status == 422


@pytest.mark.parametrize("version", ["v1", "meta.k8s.io/v1", "apps/v1", "apps.kruise.io/v1alpha1"])
async def test_delete_options_are_accepted_in_any_version(cluster: Cluster, version: str) -> None:
    await cluster.create(SETS, daemonset("d"))
    options = {"apiVersion": version, "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    answer = await cluster.delete(f"{SETS}/d", options)
    assert answer.body["metadata"]["finalizers"] == ["orphan"]


async def test_options_may_be_in_the_query(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    await cluster.delete(f"{PODS}/p?gracePeriodSeconds=0")
    assert (await cluster.get(f"{PODS}/p")).status == 404


@pytest.mark.parametrize("where", ["query", "body"])
async def test_dry_run_deletes_nothing(cluster: Cluster, where: str) -> None:
    await cluster.create(MAPS, config_map("a"))
    if where == "query":
        answer = await cluster.delete(f"{MAPS}/a?dryRun=All")
    else:
        answer = await cluster.delete(f"{MAPS}/a", {"dryRun": ["All"]})
    assert answer.body["status"] == "Success"
    assert (await cluster.get(f"{MAPS}/a")).status == 200


async def test_collection_is_deleted_as_far_as_it_is_selected(cluster: Cluster) -> None:
    await cluster.create(MAPS, {"metadata": {"name": "a", "labels": {"x": "y"}}})
    await cluster.create(MAPS, config_map("b"))
    answer = await cluster.delete(f"{MAPS}?labelSelector=x%3Dy")
    assert answer.names == ["a"]
    assert (await cluster.get(MAPS)).names == ["b"]


async def test_namespaces_are_not_deleted_all_at_once(cluster: Cluster) -> None:
    assert (await cluster.delete(f"{CORE}/namespaces")).status == 405


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
async def test_an_empty_precondition_is_one_that_nothing_meets(cluster: Cluster, key: str) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.delete(f"{MAPS}/a", {"preconditions": {key: ""}})
    assert answer.status == 409
