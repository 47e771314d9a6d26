from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import PODS, Answer, Cluster, Object, bound

STATUS = f"{PODS}/p/status"
LONG_WAY = f"{STATUS}?fieldValidation=Warn"  # says what is meant anyway, but is not so usual
READY: Object = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
STARTED: Object = {
    "phase": "Running",
    "conditions": [READY],
    "podIP": "10.0.0.1",
    "hostIPs": [{"ip": "172.16.0.1"}],
    "containerStatuses": [
        {
            "name": "c",
            "image": "agent:1",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}


async def _patched(path: str, body: bytes, metadata: Object) -> tuple[Cluster, Answer]:
    """A pod that runs, after one more patch of its status."""
    cluster = Cluster()
    made = await cluster.create(PODS, {**bound("p"), "metadata": {"name": "p", **metadata}})
    await cluster.patch(STATUS, {"status": STARTED}, STRATEGIC_PATCH)
    body = body.replace(b"UID", made["metadata"]["uid"].encode())
    answer = await cluster.ask("PATCH", path, body, content_type=STRATEGIC_PATCH)
    return cluster, answer


@pytest.mark.parametrize(
    "body",
    [
        b'{"status":{"phase":"Running"}}',
        b'{"metadata":{"uid":"UID"},"status":{"phase":"Failed","podIP":"10.0.0.2"}}',
        b'{"metadata":{"uid":"another"},"status":{"phase":"Failed"}}',
        b'{"metadata":{"labels":{"from":"kubelet"}},"status":{"phase":"Failed"}}',
        b'{"metadata":{"resourceVersion":"1"},"status":{"phase":"Failed"}}',
        b'{"status":{"conditions":[{"type":"Ready","status":"False","reason":null}]}}',
        b'{"status":{"conditions":[{"type":"A","status":"True","message":null}]}}',
        b'{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}',
        b'{"status":{"conditions":[{"status":"True"}]}}',
        b'{"status":{"conditions":[{"type":"Ready","lastTransitionTime":"today"}]}}',
        b'{"status":{"conditions":[{"type":"Ready","odd":1}]}}',
        b'{"status":{"podIPs":[{"ip":"10.0.0.9"}],"podIP":null}}',
        b'{"status":{"qosClass":"Guaranteed","phase":null}}',
        b'{"status":{"$patch":"replace","phase":"Failed"}}',
        b'{"status":{"containerStatuses":[]}}',
        b'{"status":{"phase":"Running","phase":"Failed"}}',
        b'{"status":{"phase":1}}',
        b'{"status":null}',
        b'{"status":[]}',
        b'{"metadata":null,"status":{"phase":"Failed"}}',
        b'{"spec":{"nodeName":"n2"},"status":{"phase":"Failed"}}',
        b'{"status":{"reason":"\xff"}}',
        b'{"status":',
        b"[]",
    ],
)
@pytest.mark.parametrize("metadata", [{}, {"annotations": {"a": "b"}, "finalizers": ["a/b"]}])
async def test_short_way_and_long_way_write_the_same(body: bytes, metadata: Object) -> None:
    short, answer = await _patched(STATUS, body, metadata)
    long, expected = await _patched(LONG_WAY, body, metadata)
    assert (answer.status, answer.raw) == (expected.status, expected.raw)
    assert answer.headers == expected.headers
    assert _stored(short) == _stored(long)


def _stored(cluster: Cluster) -> Any:
    record = cluster.api.store.collection("pods").get("default", "p")
    assert record is not None
    return record, cluster.api.store.version


async def test_status_is_found_by_what_it_is_now(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    await cluster.patch(STATUS, {"status": STARTED}, STRATEGIC_PATCH)
    running = "status.phase=Running,spec.nodeName=n1,status.podIP=10.0.0.1"
    assert (await cluster.get(f"{PODS}?fieldSelector={running}")).names == ["p"]


async def test_patch_that_changes_nothing_writes_nothing(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    first = await cluster.patch(STATUS, {"status": STARTED}, STRATEGIC_PATCH)
    again = await cluster.patch(STATUS, {"status": STARTED}, STRATEGIC_PATCH)
    assert again.raw == first.raw


async def test_ended_pod_stays_ended(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    await cluster.patch(STATUS, {"status": {"phase": "Failed"}}, STRATEGIC_PATCH)
    answer = await cluster.patch(STATUS, {"status": {"phase": "Running"}}, STRATEGIC_PATCH)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_watch_gets_a_status_with_its_version(cluster: Cluster) -> None:
    made = await cluster.create(PODS, bound("p"))
    watch = await cluster.watch(f"{PODS}?resourceVersion={made['metadata']['resourceVersion']}")
    answer = await cluster.patch(STATUS, {"status": STARTED}, STRATEGIC_PATCH)
    kind, seen = await watch.event()
    assert (kind, seen) == ("MODIFIED", json.loads(answer.raw))
    assert seen["metadata"]["resourceVersion"] == str(cluster.api.store.version)
