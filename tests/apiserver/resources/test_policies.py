"""Quotas, network policies and flow schemas are kept, so that manifests apply."""

from __future__ import annotations

from tests.support.api_client import CORE, Cluster

QUOTAS = f"{CORE}/namespaces/default/resourcequotas"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


async def test_a_quota_is_stored_with_a_warning_that_it_is_not_enforced(cluster: Cluster) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1000m", "pods": 10}}}
    answer = await cluster.post(QUOTAS, body)
    assert answer.body["spec"]["hard"] == {"cpu": "1", "pods": "10"}
    assert "does not enforce" in answer.headers["warning"]


async def test_quota_of_less_than_nothing_is_refused(cluster: Cluster) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "-1"}}}
    answer = await cluster.post(QUOTAS, body)
    assert answer.message.endswith(
        'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'
    )
    assert "warning" not in answer.headers


async def test_network_policy_gets_its_directions_and_protocols(cluster: Cluster) -> None:
    spec = {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}
    made = await cluster.create(POLICIES, {"metadata": {"name": "p"}, "spec": spec})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"] == [{"ports": [{"protocol": "TCP", "port": 53}]}]
    assert made["metadata"]["generation"] == 1


FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"


async def test_flow_schema_is_kept_with_a_warning_that_requests_are_handled_alike(
    cluster: Cluster,
) -> None:
    spec = {"priorityLevelConfiguration": {"name": "workload-high"}, "rules": []}
    answer = await cluster.post(FLOWS, {"metadata": {"name": "f"}, "spec": spec})
    assert answer.body["spec"]["matchingPrecedence"] == 1000
    assert answer.body["metadata"]["generation"] == 1
    assert "handles all requests alike" in answer.headers["warning"]
