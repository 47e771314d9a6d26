from __future__ import annotations

import pytest

from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import CORE, EVENTS, LEASES, Cluster

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def event(called: str = "e", **involved: str) -> dict[str, object]:
    about = {"kind": "Pod", "namespace": "default", "name": "p", **involved}
    return {"metadata": {"name": called}, "involvedObject": about, "reason": "R", "type": "Normal"}


async def test_events_are_found_by_what_they_are_about(cluster: Cluster) -> None:
    await cluster.create(EVENTS, event("one", name="p1"))
    await cluster.create(EVENTS, event("two", name="p2"))
    query = "fieldSelector=involvedObject.name%3Dp2,involvedObject.kind%3DPod,type%3DNormal"
    assert (await cluster.get(f"{EVENTS}?{query}")).names == ["two"]


async def test_event_lives_in_the_namespace_of_what_it_is_about(cluster: Cluster) -> None:
    answer = await cluster.post(EVENTS, event(namespace="other"))
    assert answer.status == 422
    assert "does not match event.namespace" in answer.message


async def test_events_about_the_whole_cluster_live_in_default(cluster: Cluster) -> None:
    about = {"kind": "Node", "name": "n"}
    body = {"metadata": {"name": "e"}, "involvedObject": about}
    assert (await cluster.post(EVENTS, body)).status == 201
    elsewhere = f"{CORE}/namespaces/kube-system/events"
    assert (await cluster.post(elsewhere, body)).status == 422


async def test_event_is_counted_up(cluster: Cluster) -> None:
    await cluster.create(EVENTS, event())
    content = "application/strategic-merge-patch+json"
    assert (await cluster.patch(f"{EVENTS}/e", {"count": 2}, content)).body["count"] == 2
    assert (await cluster.patch(f"{EVENTS}/gone", {"count": 2}, content)).status == 404


@pytest.mark.parametrize(
    "spec", [{"leaseDurationSeconds": 0}, {"leaseTransitions": -1}, {"renewTime": "yesterday"}]
)
async def test_lease_that_makes_no_sense_is_refused(
    cluster: Cluster, spec: dict[str, object]
) -> None:
    answer = await cluster.post(LEASES, {"metadata": {"name": "l"}, "spec": spec})
    assert answer.status in (400, 422)


async def test_times_of_a_lease_keep_their_microseconds(cluster: Cluster) -> None:
    spec = {"renewTime": "2026-01-01T00:00:00.000001Z"}
    made = await cluster.create(LEASES, {"metadata": {"name": "l"}, "spec": spec})
    assert made["spec"] == spec


async def test_revision_changes_its_number_and_nothing_else(cluster: Cluster) -> None:
    body = {"metadata": {"name": "r"}, "revision": 1, "data": {"a": 1, "z": [2]}}
    await cluster.create(REVISIONS, body)
    moved = await cluster.patch(f"{REVISIONS}/r", {"revision": 2})
    assert (moved.status, moved.body["revision"]) == (200, 2)
    changed = await cluster.patch(f"{REVISIONS}/r", {"data": {"a": 2}})
    assert changed.status == 422
    assert "field is immutable" in changed.message


async def test_order_of_the_data_is_kept(cluster: Cluster) -> None:
    body = {"metadata": {"name": "r"}, "revision": 1, "data": {"z": 1, "a": {"y": 1, "b": 2}}}
    await cluster.create(REVISIONS, body)
    raw = (await cluster.get(f"{REVISIONS}/r")).raw
    assert b'"data":{"z":1,"a":{"y":1,"b":2}}' in raw


async def test_a_patch_that_sorts_unsorted_data_fails_as_on_the_real_server(
    cluster: Cluster,
) -> None:
    body = {"metadata": {"name": "r"}, "revision": 1, "data": {"z": 1, "a": 2}}
    made = await cluster.create(REVISIONS, body)
    sorting = await cluster.patch(f"{REVISIONS}/r", {"revision": 2}, STRATEGIC_PATCH)
    assert sorting.status == 422
    assert (await cluster.put(f"{REVISIONS}/r", {**made, "revision": 2})).status == 200
    assert (await cluster.patch(f"{REVISIONS}/r", {"revision": 3})).status == 200
