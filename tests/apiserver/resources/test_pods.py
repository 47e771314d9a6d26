from __future__ import annotations

import pytest

from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import PODS, Cluster, bound, pod


async def test_new_pod_is_pending_with_all_defaults(cluster: Cluster) -> None:
    made = await cluster.create(PODS, {**pod("p"), "status": {"phase": "Running"}})
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["containers"][0]["resources"] == {}


async def test_gated_pod_says_why_it_is_not_scheduled(cluster: Cluster) -> None:
    made = await cluster.create(PODS, pod("p", schedulingGates=[{"name": "g"}]))
    [condition] = made["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")


async def test_image_may_change_in_place(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    change = {"spec": {"containers": [{"name": "c", "image": "agent:2"}]}}
    answer = await cluster.patch(f"{PODS}/p", change, STRATEGIC_PATCH)
    assert answer.body["spec"]["containers"][0]["image"] == "agent:2"
    assert answer.body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodeName": "n9"}, "pod updates may not change fields other than"),
        ({"terminationGracePeriodSeconds": 5}, "pod updates may not change fields other than"),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
            "pod updates may not change fields other than",
        ),
        (
            {"containers": [{"name": "d", "image": "x"}]},
            "pod updates may not add or remove containers",
        ),
        ({"schedulingGates": [{"name": "g"}]}, "found new scheduling gate 'g'"),
        ({"tolerations": None}, "existing toleration can not be modified"),
    ],
)
async def test_the_rest_of_the_spec_is_fixed(
    cluster: Cluster, change: dict[str, object], words: str
) -> None:
    await cluster.create(PODS, bound("p", tolerations=[{"key": "k", "operator": "Exists"}]))
    answer = await cluster.patch(f"{PODS}/p", {"spec": change}, STRATEGIC_PATCH)
    assert answer.status == 422
    assert words in answer.message


async def test_deadline_may_only_come_nearer(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    assert (await cluster.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 9}})).status == 200
    assert (await cluster.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}})).status == 200
    later = await cluster.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 7}})
    assert "must be less than or equal to previous value" in later.message


async def test_tolerations_may_be_added(cluster: Cluster) -> None:
    made = await cluster.create(PODS, bound("p"))
    more = [*made["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]
    answer = await cluster.patch(f"{PODS}/p", {"spec": {"tolerations": more}})
    assert answer.body["spec"]["tolerations"] == more


async def test_status_write_cannot_end_or_give_away_a_pod(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
    change = {
        "metadata": {"ownerReferences": [owner], "labels": {"from": "kubelet"}},
        "status": {"phase": "Running"},
    }
    answer = await cluster.patch(f"{PODS}/p/status", change)
    assert "ownerReferences" not in answer.body["metadata"]
    assert answer.body["metadata"]["labels"] == {"from": "kubelet"}
    assert answer.body["status"]["qosClass"] == "BestEffort"


async def test_spec_that_was_right_once_is_still_checked_where_it_differs(
    cluster: Cluster,
) -> None:
    await cluster.create(PODS, pod("a"))
    term = {"matchExpressions": [{"key": "-", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [term]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    answer = await cluster.post(PODS, pod("b", affinity={"nodeAffinity": node}))
    assert answer.status == 422
    assert "spec.affinity.nodeAffinity" in answer.message


async def test_pod_without_containers_is_refused(cluster: Cluster) -> None:
    answer = await cluster.post(PODS, {"metadata": {"name": "p"}, "spec": {}})
    assert (answer.status, answer.message) == (
        422,
        'Pod "p" is invalid: spec.containers: Required value',
    )
