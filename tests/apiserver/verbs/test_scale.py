from __future__ import annotations

from typing import Any

import pytest

from everynode.kube.requests import APPLY_PATCH
from tests.support.api_client import Cluster, daemonset

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def scale(replicas: Any, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "d", **meta}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize("path", [DEPLOYMENTS, SETS])
async def test_scale_tells_how_many_and_which_pods(cluster: Cluster, path: str) -> None:
    made = await cluster.create(path, daemonset("d"))
    told = await cluster.read(f"{path}/d/scale")
    assert (told["kind"], told["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert told["metadata"] == {
        key: made["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    assert told["spec"] == {"replicas": 1}
    assert told["status"] == {"replicas": 0, "selector": "app=d"}


async def test_another_scale_is_a_change_of_the_workload(cluster: Cluster) -> None:
    await cluster.create(f"{DEPLOYMENTS}?fieldManager=first", daemonset("d"))
    answer = await cluster.patch(f"{DEPLOYMENTS}/d/scale?fieldManager=m", scale(3))
    assert answer.body["spec"] == {"replicas": 3}
    changed = await cluster.read(f"{DEPLOYMENTS}/d")
    assert changed["spec"]["replicas"] == 3
    assert changed["metadata"]["generation"] == 2
    assert changed["metadata"]["resourceVersion"] == answer.body["metadata"]["resourceVersion"]
    [first, entry] = changed["metadata"]["managedFields"]
    assert "f:replicas" not in first["fieldsV1"]["f:spec"]
    assert (entry["manager"], entry["subresource"]) == ("m", "scale")
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


async def test_nothing_but_the_number_is_taken_from_a_scale(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    sent = {**scale(2, labels={"a": "b"}), "status": {"replicas": 9}}
    assert (await cluster.put(f"{DEPLOYMENTS}/d/scale", sent)).status == 200
    changed = await cluster.read(f"{DEPLOYMENTS}/d")
    assert "labels" not in changed["metadata"]
    assert (changed["spec"]["replicas"], changed["status"]) == (2, {})


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (scale(-1), 422, 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1'),
        (scale("two"), 400, "cannot be handled as a Scale"),
        (scale(2, resourceVersion="1"), 409, "the object has been modified"),
        (scale(2, uid="another"), 409, "UID in precondition: another"),
        ({**scale(2), "kind": "Deployment"}, 400, "cannot be handled as a Scale"),
        ({"metadata": {"name": "e"}}, 400, "does not match the name on the URL (d)"),
    ],
)
async def test_a_scale_that_makes_no_sense_changes_nothing(
    cluster: Cluster, sent: dict[str, Any], status: int, words: str
) -> None:
    made = await cluster.create(DEPLOYMENTS, daemonset("d"))
    answer = await cluster.put(f"{DEPLOYMENTS}/d/scale", sent)
    assert answer.status == status
    assert words in answer.message
    assert await cluster.read(f"{DEPLOYMENTS}/d") == made


def applied(replicas: Any) -> dict[str, Any]:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", **scale(replicas)}


async def test_the_manager_that_applies_a_scale_owns_the_replicas_of_the_workload(
    cluster: Cluster,
) -> None:
    await cluster.create(f"{DEPLOYMENTS}?fieldManager=first", daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=m"
    answer = await cluster.patch(f"{path}&force=true", applied(3), content_type=APPLY_PATCH)
    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 3})
    changed = await cluster.read(f"{DEPLOYMENTS}/d")
    assert changed["spec"]["replicas"] == 3
    owners = changed["metadata"]["managedFields"]
    [entry] = [each for each in owners if each["manager"] == "m"]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "scale")
    assert (entry["apiVersion"], entry["fieldsV1"]) == (
        "apps/v1",
        {"f:spec": {"f:replicas": {}}},
    )


async def test_replicas_applied_by_another_manager_are_not_taken_over(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager="
    forced = f"{path}one&force=true"
    assert (await cluster.patch(forced, applied(2), content_type=APPLY_PATCH)).status == 200
    answer = await cluster.patch(f"{path}two", applied(3), content_type=APPLY_PATCH)
    assert answer.status == 409
    assert 'conflict with "one" with subresource "scale": .spec.replicas' in answer.message


async def test_conflict_names_the_version_in_which_the_number_is_shown(cluster: Cluster) -> None:
    await cluster.create(f"{DEPLOYMENTS}?fieldManager=first", daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=m"
    answer = await cluster.patch(path, applied(3), content_type=APPLY_PATCH)
    assert answer.status == 409
    assert 'conflict with "first" using autoscaling/v1: .spec.replicas' in answer.message


async def test_number_that_its_only_owner_no_longer_applies_is_nought(cluster: Cluster) -> None:
    await cluster.create(f"{DEPLOYMENTS}?fieldManager=first", daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=m&force=true"
    await cluster.patch(path, applied(3), content_type=APPLY_PATCH)
    nothing = {key: value for key, value in applied(3).items() if key != "spec"}
    answer = await cluster.patch(path, nothing, content_type=APPLY_PATCH)
    assert (answer.status, answer.body["spec"]) == (200, {})
    changed = await cluster.read(f"{DEPLOYMENTS}/d")
    assert changed["spec"]["replicas"] == 0
    assert [each["manager"] for each in changed["metadata"]["managedFields"]] == ["first"]


@pytest.mark.parametrize("number", [0, 3])
async def test_a_scale_that_is_applied_again_later_changes_nothing(
    cluster: Cluster, number: int
) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=m&force=true"
    await cluster.patch(path, applied(number), content_type=APPLY_PATCH)
    before = await cluster.read(f"{DEPLOYMENTS}/d")
    cluster.clock.seconds += 3
    labelled = {**applied(number), "metadata": {"name": "d", "labels": {"a": "b"}}}
    for again in (applied(number), labelled):
        answer = await cluster.patch(path, again, content_type=APPLY_PATCH)
        assert answer.status == 200
        assert await cluster.read(f"{DEPLOYMENTS}/d") == before


@pytest.mark.parametrize(
    ("sent", "status"), [(applied(-1), 422), (scale(2), 400), ({**applied(2), "kind": "D"}, 400)]
)
async def test_scale_that_makes_no_sense_is_not_applied(
    cluster: Cluster, sent: dict[str, Any], status: int
) -> None:
    made = await cluster.create(DEPLOYMENTS, daemonset("d"))
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=m&force=true"
    assert (await cluster.patch(path, sent, content_type=APPLY_PATCH)).status == status
    assert await cluster.read(f"{DEPLOYMENTS}/d") == made


async def test_scale_of_nothing_is_not_found(cluster: Cluster) -> None:
    answer = await cluster.get(f"{DEPLOYMENTS}/none/scale")
    assert (answer.status, answer.message) == (404, 'deployments.apps "none" not found')


async def test_daemonsets_have_no_scale(cluster: Cluster) -> None:
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    await cluster.create(path, daemonset("d"))
    assert (await cluster.get(f"{path}/d/scale")).status == 404


async def test_a_person_sees_what_is_wanted_and_what_is_there(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    made = (await cluster.get(f"{DEPLOYMENTS}/d/scale", accept=TABLE)).body
    assert [each["name"] for each in made["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert made["rows"][0]["cells"][:3] == ["d", 1, 0]


async def test_field_validation_warn_reports_unknown_fields(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    answer = await cluster.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"odd": 1}})
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.odd\\""'
