from __future__ import annotations

from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import CORE, Cluster

NODES = f"{CORE}/nodes"


async def test_new_node_keeps_its_status_and_is_tainted(cluster: Cluster) -> None:
    status = {"capacity": {"cpu": "4000m", "memory": "1024Mi"}}
    made = await cluster.create(NODES, {"metadata": {"name": "n"}, "status": status})
    assert made["status"]["capacity"] == {"cpu": "4", "memory": "1Gi"}
    assert made["status"]["allocatable"] == {"cpu": "4", "memory": "1Gi"}
    assert made["spec"]["taints"] == [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ]


async def test_cordoned_nodes_are_found(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.create(NODES, {"metadata": {"name": name}})
    await cluster.patch(f"{NODES}/a", {"spec": {"unschedulable": True}})
    found = await cluster.get(f"{NODES}?fieldSelector=spec.unschedulable%3Dtrue")
    assert found.names == ["a"]


async def test_conditions_are_merged_by_type(cluster: Cluster) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.create(NODES, {"metadata": {"name": "n"}, "status": ready})
    change = {"conditions": [{"type": "DiskPressure", "status": "True"}]}
    answer = await cluster.patch(f"{NODES}/n/status", {"status": change}, STRATEGIC_PATCH)
    types = [condition["type"] for condition in answer.body["status"]["conditions"]]
    assert sorted(types) == ["DiskPressure", "Ready"]


async def test_taint_with_an_unknown_effect_is_refused(cluster: Cluster) -> None:
    await cluster.create(NODES, {"metadata": {"name": "n"}})
    taints = [{"key": "a", "effect": "Foo"}]
    answer = await cluster.patch(f"{NODES}/n", {"spec": {"taints": taints}})
    assert answer.status == 422
    assert 'metadata.taints[0].effect: Unsupported value: "Foo"' in answer.message


async def test_what_was_given_to_a_node_stays(cluster: Cluster) -> None:
    await cluster.create(NODES, {"metadata": {"name": "n"}})
    given = await cluster.patch(
        f"{NODES}/n", {"spec": {"podCIDR": "10.1.0.0/24", "providerID": "x"}}
    )
    assert given.body["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    for change in ({"podCIDR": "10.2.0.0/24"}, {"providerID": "y"}):
        assert (await cluster.patch(f"{NODES}/n", {"spec": change})).status == 422
