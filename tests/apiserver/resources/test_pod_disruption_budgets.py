from __future__ import annotations

from tests.apiserver.verbs.test_pod_subresources import BUDGETS, budget, evict, running
from tests.support.api_client import PODS, Cluster


async def test_a_disruption_budget_is_counted_when_it_is_read(cluster: Cluster) -> None:
    await budget(cluster, minAvailable=1)
    for name in ("p", "q"):
        await running(cluster, name)
    status = (await cluster.read(f"{BUDGETS}/b"))["status"]
    assert (status["expectedPods"], status["currentHealthy"]) == (2, 2)
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (1, 1)
    assert status["conditions"][0]["reason"] == "SufficientPods"


async def test_pod_on_its_way_out_is_not_healthy(cluster: Cluster) -> None:
    await budget(cluster, minAvailable=1)
    for name in ("p", "q"):
        await running(cluster, name)
    await cluster.delete(f"{PODS}/p")
    listed = (await cluster.read(BUDGETS))["items"][0]["status"]
    assert (listed["currentHealthy"], listed["disruptionsAllowed"]) == (1, 0)
    assert listed["conditions"][0]["reason"] == "InsufficientPods"


async def test_reconciling_twice_writes_once(cluster: Cluster) -> None:
    await budget(cluster, minAvailable=1)
    await running(cluster, "p")
    first = await cluster.read(f"{BUDGETS}/b")
    assert await cluster.read(f"{BUDGETS}/b") == first


async def test_a_pod_with_the_name_of_an_evicted_one_counts_as_healthy(cluster: Cluster) -> None:
    await budget(cluster, minAvailable=1)
    for name in ("p", "q"):
        await running(cluster, name)
    assert (await evict(cluster, "p", gracePeriodSeconds=0)).status == 201
    await running(cluster, "p")
    assert (await cluster.read(f"{BUDGETS}/b"))["status"]["disruptionsAllowed"] == 1
    assert (await evict(cluster, "q", gracePeriodSeconds=0)).status == 201
