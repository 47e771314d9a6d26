from __future__ import annotations

from typing import Any

import pytest

from everynode.api import keys
from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import ADVANCED, SETS, Cluster, daemonset

OLD = ADVANCED.replace("v1beta1", "v1alpha1")


def advanced(name: str = "agent", version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    named = {"apiVersion": f"apps.kruise.io/{version}", "kind": "DaemonSet"}
    return {**named, **daemonset(name, **spec)}


def count(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["annotations"][keys.TEMPLATE_GENERATION])


async def test_native_kind_counts_changes_of_its_template(cluster: Cluster) -> None:
    made = await cluster.create(SETS, daemonset())
    assert (made["metadata"]["generation"], count(made)) == (1, "1")
    other = (await cluster.patch(f"{SETS}/agent", {"spec": {"minReadySeconds": 5}})).body
    assert (other["metadata"]["generation"], count(other)) == (2, "1")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "agent:2"}]}}}}
    new = (await cluster.patch(f"{SETS}/agent", image, STRATEGIC_PATCH)).body
    assert (new["metadata"]["generation"], count(new)) == (3, "2")


async def test_count_cannot_be_written_after_creation(cluster: Cluster) -> None:
    body = daemonset()
    body["metadata"]["annotations"] = {keys.TEMPLATE_GENERATION: "7"}
    assert count(await cluster.create(SETS, body)) == "7"
    forged = {"metadata": {"annotations": {keys.TEMPLATE_GENERATION: "9"}}}
    assert count((await cluster.patch(f"{SETS}/agent", forged)).body) == "7"


async def test_count_that_is_no_number_is_refused(cluster: Cluster) -> None:
    body = daemonset()
    body["metadata"]["annotations"] = {keys.TEMPLATE_GENERATION: "x"}
    answer = await cluster.post(SETS, body)
    assert answer.status == 400
    assert 'strconv.ParseInt: parsing "x": invalid syntax' in answer.message


async def test_status_starts_at_zero_and_is_written_apart(cluster: Cluster) -> None:
    made = await cluster.create(SETS, {**daemonset(), "status": {"numberReady": 5}})
    assert made["status"]["numberReady"] == 0
    status = {"status": {"numberReady": 3, "observedGeneration": 1}}
    answer = await cluster.patch(f"{SETS}/agent/status", status)
    assert answer.body["status"]["numberReady"] == 3
    assert answer.body["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [({"numberReady": -1}, "must be greater than or equal to 0"), ({"collisionCount": 1}, "")],
)
async def test_counters_of_the_status_are_checked(
    cluster: Cluster, status: dict[str, int], words: str
) -> None:
    await cluster.create(SETS, daemonset())
    await cluster.patch(f"{SETS}/agent/status", {"status": {"collisionCount": 2}})
    answer = await cluster.patch(f"{SETS}/agent/status", {"status": status})
    assert answer.status == 422
    assert words in answer.message


async def test_selector_of_both_kinds_is_fixed(cluster: Cluster) -> None:
    await cluster.create(SETS, daemonset())
    await cluster.create(ADVANCED, advanced())
    for path in (SETS, ADVANCED):
        change = {"spec": {"selector": {"matchLabels": {"other": "x"}}}}
        answer = await cluster.patch(f"{path}/agent", change)
        assert answer.status == 422
        assert "field is immutable" in answer.message


async def test_advanced_kind_gets_the_defaults_of_its_schema(cluster: Cluster) -> None:
    made = await cluster.create(ADVANCED, advanced())
    assert made["spec"]["burstReplicas"] == 250
    assert made["spec"]["revisionHistoryLimit"] == 10
    assert made["metadata"]["generation"] == 1
    # The template of a custom kind is stored as it was written.
    assert "restartPolicy" not in made["spec"]["template"]["spec"]


async def test_both_versions_show_the_same_object(cluster: Cluster) -> None:
    await cluster.create(OLD, advanced(version="v1alpha1"))
    new, old = await cluster.read(f"{ADVANCED}/agent"), await cluster.read(f"{OLD}/agent")
    assert new["apiVersion"] == "apps.kruise.io/v1beta1"
    assert old == {**new, "apiVersion": "apps.kruise.io/v1alpha1"}
    change = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}
    assert (await cluster.patch(f"{OLD}/agent", change)).body["apiVersion"] == old["apiVersion"]
    strategy = (await cluster.read(f"{ADVANCED}/agent"))["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["partition"] == 2


async def test_advanced_kind_takes_no_strategic_patch(cluster: Cluster) -> None:
    await cluster.create(ADVANCED, advanced())
    answer = await cluster.patch(f"{ADVANCED}/agent", {"spec": {}}, STRATEGIC_PATCH)
    assert answer.status == 415


async def test_unknown_field_is_dropped_with_a_warning_or_refused(cluster: Cluster) -> None:
    warned = await cluster.post(ADVANCED, advanced("a", foo=1))
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.foo\\""'
    assert "foo" not in warned.body["spec"]
    refused = await cluster.post(f"{ADVANCED}?fieldValidation=Strict", advanced("b", foo=1))
    assert refused.status == 400
    assert 'strict decoding error: unknown field "spec.foo"' in refused.message


async def test_status_of_the_advanced_kind_leaves_metadata_alone(cluster: Cluster) -> None:
    await cluster.create(ADVANCED, advanced())
    counters = dict.fromkeys(
        (
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
            "updatedNumberScheduled",
        ),
        0,
    )
    change = {"metadata": {"labels": {"x": "y"}}, "status": counters}
    answer = await cluster.patch(f"{ADVANCED}/agent/status", change)
    born = {"observedGeneration": -1, "numberAvailable": 0, "numberUnavailable": 0}
    assert answer.body["status"] == counters | born
    assert "labels" not in answer.body["metadata"]


async def test_replacing_an_advanced_one_needs_its_version(cluster: Cluster) -> None:
    made = await cluster.create(ADVANCED, advanced())
    assert (await cluster.put(f"{ADVANCED}/agent", advanced())).status == 422
    assert (await cluster.put(f"{ADVANCED}/agent", made)).status == 200


@pytest.mark.parametrize("path", [SETS, ADVANCED])
async def test_selector_must_select_the_template(cluster: Cluster, path: str) -> None:
    body = advanced(selector={"matchLabels": {"other": "x"}})
    if path == SETS:
        body["apiVersion"] = "apps/v1"
    answer = await cluster.post(path, body)
    assert answer.status == 422
    assert "`selector` does not match template `labels`" in answer.message
