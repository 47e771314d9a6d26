from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.cli.planning.room import find_shortages, matters, priority_of, requests_of
from everynode.forecast.planned_rollout import PlanRequest, plan_rollout
from everynode.inspect.node_usage import read_usage
from everynode.inspect.stored_objects import StoredObjects
from everynode.kube import verbs
from everynode.kube.resources import PODS
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Timing
from tests.support.virtual_cluster import Object, VirtualCluster, in_virtual_cluster

TIMING = Timing(pull=1.0, start=1.0, stop=1.0)


def requesting(cpu: str, **more: Any) -> Object:
    containers = [{"name": "agent", "image": "agent:v1", "resources": {"requests": {"cpu": cpu}}}]
    return daemonset(template={"containers": containers}, **more)


def test_room_matters_where_requests_grow_or_a_second_pod_comes() -> None:
    small, large = requesting("100m"), requesting("200m")
    assert not matters(small, small)
    assert not matters(large, small)
    assert matters(small, large)
    assert matters(None, small)
    assert not matters(None, daemonset())
    assert matters(small, requesting("100m", rolling={"maxSurge": 1}))
    assert requests_of({"spec": {"template": {"spec": {"containers": 1}}}}) == {}


def test_the_priority_is_that_of_the_pods_that_run() -> None:
    pod = msgspec.json.encode({"spec": {"priority": 7}})
    other = daemonset(template={"priorityClassName": "other"})
    assert priority_of(daemonset(), daemonset(), [pod]) == 7
    assert priority_of(daemonset(), other, [pod]) == 0
    assert priority_of(None, daemonset(), []) == 0


def foreign_pod(name: str, node: str, cpu: str) -> Object:
    containers = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}}


@pytest.mark.parametrize(
    ("rolling", "cpu", "shortage"),
    [
        ({"maxUnavailable": 1}, "3", "Insufficient cpu: 3 needed, 1500m free"),
        ({"maxSurge": 1, "maxUnavailable": 0}, "1", "Insufficient cpu: 1 needed, 500m free"),
    ],
)
def test_nodes_that_others_have_filled_are_found(rolling: Object, cpu: str, shortage: str) -> None:
    """A simulated node has 8 cpus; on one of three a pod of another team takes most of them."""
    before = requesting("1", rolling=rolling)

    async def scenario(cluster: VirtualCluster) -> StoredObjects:
        for body in (
            foreign_pod("big", "node-0002", "6500m"),
            foreign_pod("small", "node-0001", "500m"),
        ):
            await cluster.client.write(verbs.create(PODS, body, namespace="default"), bytes)
        await cluster.create(before)
        await cluster.complete(before)
        objects = await cluster.stored(before)
        assert objects.ds is not None
        own = msgspec.json.decode(objects.ds)["metadata"]["uid"]
        used = await read_usage(cluster.client, own=own, priority=0)
        assert used == {
            "node-0001": {"cpu": 500, "pods": 1},
            "node-0002": {"cpu": 6500, "pods": 1},
        }
        assert await read_usage(cluster.client, own=own, priority=1) == {}  # they give way
        return msgspec.structs.replace(objects, used=used)

    objects = in_virtual_cluster(scenario, nodes=3, timing=TIMING)
    assert objects.ds is not None
    live = msgspec.json.decode(objects.ds, type=dict[str, Any])
    new = {**live, "spec": requesting(cpu, rolling=rolling, labels={"changed": "true"})["spec"]}
    plan = plan_rollout(PlanRequest(new=new, objects=objects, namespace="default", timing=TIMING))
    assert find_shortages(plan, objects, new) == {"node-0002": shortage}
    assert plan.forecast.ending != "complete"
    assert plan.forecast.updated == 2
