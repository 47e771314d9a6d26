from __future__ import annotations

from typing import Any

import pytest

from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import PODS, Answer, Cluster


async def resize(cluster: Cluster, **resources: Any) -> Answer:
    change = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    return await cluster.patch(f"{PODS}/p/resize", change, STRATEGIC_PATCH)


@pytest.fixture
async def resizable(cluster: Cluster) -> Cluster:
    resources = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    containers = [{"name": "c", "image": "agent:1", "resources": resources}]
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": containers}}
    await cluster.create(PODS, body)
    return cluster


async def test_cpu_and_memory_may_change(resizable: Cluster) -> None:
    answer = await resize(resizable, requests={"cpu": "200m"}, limits={"memory": "2Gi"})
    assert answer.status == 200
    assert answer.body["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "200m", "memory": "1Gi"},
        "limits": {"memory": "2Gi"},
    }
    assert answer.body["metadata"]["generation"] == 2


async def test_nothing_else_changes_with_a_resize(resizable: Cluster) -> None:
    change = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"containers": [{"name": "c", "image": "agent:2", "resources": {}}]},
    }
    answer = await resizable.patch(f"{PODS}/p/resize", change, STRATEGIC_PATCH)
    assert answer.status == 200
    assert answer.body["spec"]["containers"][0]["image"] == "agent:1"
    assert "labels" not in answer.body["metadata"]
    assert answer.body["metadata"]["generation"] == 1


async def test_quality_of_service_stays(resizable: Cluster) -> None:
    same = {"cpu": "1", "memory": "1Gi"}
    answer = await resize(resizable, requests=same, limits=same)
    assert answer.status == 422
    assert "Pod QOS Class may not change as a result of resizing" in answer.message


async def test_requests_are_not_taken_away(resizable: Cluster) -> None:
    answer = await resize(resizable, requests={"cpu": None})
    assert "resource requests cannot be removed" in answer.message


async def test_other_resources_are_not_resized(resizable: Cluster) -> None:
    answer = await resize(resizable, requests={"ephemeral-storage": "1Gi"})
    assert "only cpu and memory resources are mutable" in answer.message


async def test_kubelet_must_be_able_to_resize(resizable: Cluster) -> None:
    running = {"name": "c", "state": {"running": {}}}
    await resizable.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [running]}})
    answer = await resize(resizable, requests={"cpu": "200m"})
    assert "Pod running on node without support for resize" in answer.message
