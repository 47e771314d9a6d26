from __future__ import annotations

from tests.support.api_client import PODS, Cluster, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_pod_stays_five_minutes_on_a_lost_node_unless_it_says_otherwise(
    cluster: Cluster,
) -> None:
    plain = await cluster.create(PODS, pod("plain"))
    assert [(t["key"], t["tolerationSeconds"]) for t in plain["spec"]["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    everything = [{"operator": "Exists"}]
    calm = await cluster.create(PODS, pod("calm", tolerations=everything))
    assert calm["spec"]["tolerations"] == everything


async def test_priority_comes_from_the_class(cluster: Cluster) -> None:
    made = await cluster.create(PODS, pod("p", priorityClassName="system-node-critical"))
    assert made["spec"]["priority"] == 2_000_001_000


async def test_the_default_priority_class_is_given_to_pods_that_name_none(cluster: Cluster) -> None:
    await cluster.create(
        CLASSES,
        {
            "metadata": {"name": "usual"},
            "value": 7,
            "globalDefault": True,
            "preemptionPolicy": "Never",
        },
    )
    spec = (await cluster.create(PODS, pod("p")))["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)
    assert spec["preemptionPolicy"] == "Never"


async def test_unknown_class_and_chosen_priority_are_refused(cluster: Cluster) -> None:
    unknown = await cluster.post(PODS, pod("p", priorityClassName="nope"))
    assert unknown.status == 403
    assert unknown.message == ('pods "p" is forbidden: no PriorityClass with name nope was found')
    chosen = await cluster.post(PODS, pod("p", priority=9))
    assert chosen.status == 403
    assert "the integer value of priority (9) must not be provided" in chosen.message


async def test_pod_runs_under_the_account_of_its_namespace(cluster: Cluster) -> None:
    made = await cluster.create(PODS, pod("p"))
    assert made["spec"]["serviceAccountName"] == "default"
    answer = await cluster.post(PODS, pod("q", serviceAccountName="missing"))
    assert answer.status == 403
    assert 'serviceaccount "missing" not found' in answer.message
