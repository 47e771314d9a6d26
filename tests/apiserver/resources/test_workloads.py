from __future__ import annotations

from typing import Any

import pytest

from tests.support.api_client import EVENTS, Cluster, daemonset

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_deployment_gets_its_defaults_and_nothing_runs_it(cluster: Cluster) -> None:
    made = await cluster.create(DEPLOYMENTS, daemonset("d"))
    spec = made["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert made["status"] == {}
    [event] = (await cluster.read(EVENTS))["items"]
    assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
    assert event["message"] == "The embedded cluster keeps Deployments but makes no pods of them."


async def test_deployment_must_select_its_own_pods(cluster: Cluster) -> None:
    answer = await cluster.post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {}})
    assert answer.message == (
        'Deployment.apps "d" is invalid: [spec.selector: Required value, '
        "spec.template.metadata.labels: Invalid value: null: `selector` does not match template "
        "`labels`, spec.template.spec.containers: Required value]"
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "cannot be both set"),
        ({"minAvailable": "x%"}, "spec.minAvailable: Invalid value"),
        ({"maxUnavailable": -1}, "spec.maxUnavailable: Invalid value: -1"),
    ],
)
async def test_budget_that_makes_no_sense_is_refused(
    cluster: Cluster, spec: dict[str, Any], words: str
) -> None:
    answer = await cluster.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    assert answer.status == 422
    assert words in answer.message


async def test_priority_class_keeps_its_value(cluster: Cluster) -> None:
    made = await cluster.create(CLASSES, {"metadata": {"name": "p"}, "value": 5})
    assert (made["preemptionPolicy"], made["metadata"]["generation"]) == (
        "PreemptLowerPriority",
        1,
    )
    for change in ({"value": 6}, {"preemptionPolicy": "Never"}):
        assert (await cluster.patch(f"{CLASSES}/p", change)).status == 422


@pytest.mark.parametrize(("name", "value"), [("system-mine", 5), ("mine", 1_000_000_001)])
async def test_system_names_and_values_are_reserved(
    cluster: Cluster, name: str, value: int
) -> None:
    answer = await cluster.post(CLASSES, {"metadata": {"name": name}, "value": value})
    assert answer.status == 422


@pytest.mark.parametrize("group", ["/api/v1", "/apis/events.k8s.io/v1"])
async def test_writing_back_what_is_said_of_a_deployment_changes_nothing(
    cluster: Cluster, group: str
) -> None:
    await cluster.create(DEPLOYMENTS, daemonset("d"))
    where = f"{group}/namespaces/default/events"
    [name] = (await cluster.get(where)).names
    event = await cluster.read(f"{where}/{name}")
    assert (await cluster.put(f"{where}/{name}", event)).body == event
