from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.resources.conditions import find_condition
from tests.support.api_client import CORE, PODS, Answer, Cluster, bound, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def binding(name: str = "p", **target: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1", **target}}


async def evict(cluster: Cluster, name: str = "p", **options: Any) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return await cluster.post(f"{PODS}/{name}/eviction", {**body, "deleteOptions": options})


async def running(cluster: Cluster, name: str = "p", *, ready: bool = True) -> None:
    body = bound(name)
    body["metadata"]["labels"] = {"app": "web"}
    await cluster.create(PODS, body)
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": "Running", "conditions": [condition]}
    await cluster.patch(f"{PODS}/{name}/status", {"status": status})


async def budget(cluster: Cluster, name: str = "b", **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    await cluster.create(
        BUDGETS, {"metadata": {"name": name}, "spec": {"selector": selector, **spec}}
    )


async def test_binding_gives_a_pod_its_node(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p"))
    answer = await cluster.post(f"{PODS}/p/binding", binding())
    assert (answer.status, answer.body["status"]) == (201, "Success")
    made = await cluster.read(f"{PODS}/p")
    assert made["spec"]["nodeName"] == "n1"
    scheduled = find_condition(made, "PodScheduled")
    assert scheduled is not None
    assert scheduled["status"] == "True"
    assert made["metadata"]["generation"] == 1


async def test_a_pod_carries_the_zone_and_region_of_its_node(cluster: Cluster) -> None:
    place = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
    labels = {**place, "other": "x"}
    await cluster.create(f"{CORE}/nodes", {"metadata": {"name": "n1", "labels": labels}})
    await cluster.create(PODS, pod("p"))
    assert "labels" not in (await cluster.read(f"{PODS}/p"))["metadata"]
    await cluster.post(f"{PODS}/p/binding", binding())
    assert (await cluster.read(f"{PODS}/p"))["metadata"]["labels"] == place
    assert (await cluster.create(PODS, bound("q")))["metadata"]["labels"] == place


async def test_binding_may_be_posted_without_naming_the_pod_in_the_address(
    cluster: Cluster,
) -> None:
    await cluster.create(PODS, pod("p"))
    answer = await cluster.post(f"{CORE}/namespaces/default/bindings", binding())
    assert answer.status == 201
    assert (await cluster.read(f"{PODS}/p"))["spec"]["nodeName"] == "n1"


async def test_pod_is_bound_once(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    answer = await cluster.post(f"{PODS}/p/binding", binding())
    assert answer.status == 409
    assert answer.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )


async def test_binding_of_another_pod_is_refused(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p"))
    assert (await cluster.post(f"{PODS}/p/binding", binding("q"))).status == 400
    other = binding()
    other["metadata"]["uid"] = "other"
    assert (await cluster.post(f"{PODS}/p/binding", other)).status == 409
    assert (await cluster.post(f"{PODS}/p/binding", binding(name="p", kind="X"))).status == 422
    assert (await cluster.post(f"{PODS}/q/binding", binding("q"))).status == 404


async def test_gated_and_ending_pods_are_not_bound(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("g", schedulingGates=[{"name": "x"}]))
    gated = await cluster.post(f"{PODS}/g/binding", binding("g"))
    assert "has non-empty .spec.schedulingGates" in gated.message


async def test_eviction_without_a_budget_deletes_gracefully(cluster: Cluster) -> None:
    await running(cluster)
    assert (await evict(cluster)).status == 201
    made = await cluster.read(f"{PODS}/p")
    assert made["metadata"]["deletionGracePeriodSeconds"] == 30
    condition = find_condition(made, "DisruptionTarget")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")


async def test_old_eviction_is_understood(cluster: Cluster) -> None:
    await running(cluster)
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await cluster.post(f"{PODS}/p/eviction", body)).status == 201


async def test_budget_that_is_used_up_refuses(cluster: Cluster) -> None:
    await running(cluster, "p")
    await running(cluster, "q")
    await budget(cluster, minAvailable=1)
    assert (await evict(cluster, "p")).status == 201
    answer = await evict(cluster, "q")
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    [cause] = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"


async def test_budget_counts_percentages(cluster: Cluster) -> None:
    for name in ("p", "q", "r", "s"):
        await running(cluster, name)
    await budget(cluster, maxUnavailable="50%")
    statuses = [(await evict(cluster, name)).status for name in ("p", "q", "r")]
    assert statuses == [201, 201, 429]


async def test_pod_that_does_not_run_needs_no_budget(cluster: Cluster) -> None:
    body = pod("p")
    body["metadata"]["labels"] = {"app": "web"}
    await cluster.create(PODS, body)
    await budget(cluster, minAvailable=1)
    assert (await evict(cluster)).status == 201
    assert (await cluster.get(f"{PODS}/p")).status == 404


async def test_unready_pod_is_evicted_when_the_others_suffice(cluster: Cluster) -> None:
    await running(cluster, "good")
    await running(cluster, "bad", ready=False)
    await budget(cluster, minAvailable=1)
    assert (await evict(cluster, "bad")).status == 201
    assert (await evict(cluster, "good")).status == 429


async def test_two_budgets_on_one_pod_are_an_error(cluster: Cluster) -> None:
    await running(cluster)
    await budget(cluster, "one", minAvailable=0)
    await budget(cluster, "two", minAvailable=0)
    answer = await evict(cluster)
    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.message


async def test_dry_run_evicts_nothing(cluster: Cluster) -> None:
    await running(cluster)
    assert (await evict(cluster, dryRun=["All"])).status == 201
    assert "deletionTimestamp" not in (await cluster.read(f"{PODS}/p"))["metadata"]


async def test_log_says_that_it_is_simulated(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    answer = await cluster.get(f"{PODS}/p/log")
    assert answer.headers["content-type"] == "text/plain"
    assert b"simulated" in answer.raw
    assert (await cluster.get(f"{PODS}/p/log?container=x")).status == 400


@pytest.mark.parametrize("subresource", ["attach", "exec", "portforward"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_connecting_to_a_pod_says_that_it_is_simulated(
    cluster: Cluster, subresource: str, method: str
) -> None:
    await cluster.create(PODS, bound("p"))
    answer = await cluster.ask(method, f"{PODS}/p/{subresource}?container=a")
    assert answer.status == 400
    assert "is simulated" in answer.message
