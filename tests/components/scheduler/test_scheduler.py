"""Scheduling: bindings, and the conditions of pods that fit nowhere."""

from __future__ import annotations

from typing import Any

from everynode.components.run import ComponentOptions
from everynode.kube import verbs
from everynode.kube.resources import NODES, PODS, Resource
from tests.support.components_cluster import World, condition, pod_body, running, virtual

Object = dict[str, Any]
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)


def asking(cpu: str = "", memory: str = "", port: int = 0) -> list[Object]:
    amounts = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container: Object = {"name": "agent", "image": "agent:v1", "resources": {"requests": amounts}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    return [container]


async def why_not(world: World, name: str) -> str:
    pod = await world.pod(name)
    found = condition(pod, "PodScheduled")
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert "nodeName" not in pod["spec"]
    return str(found["message"])


async def priority_class(world: World, name: str, value: int, **more: Any) -> None:
    body = {"metadata": {"name": name}, "value": value, **more}
    await world.ask(verbs.create(PRIORITY_CLASSES, body))


@virtual
async def test_pods_that_may_go_anywhere_are_spread() -> None:
    async with running() as world:
        for index in range(6):
            await world.create(PODS, pod_body(f"pod-{index}", containers=asking("1")))
            await world.pass_time(0.1)
        nodes = sorted(pod["spec"]["nodeName"] for pod in await world.all(PODS))
        assert nodes == ["node-0001"] * 2 + ["node-0002"] * 2 + ["node-0003"] * 2


@virtual
async def test_selectors_and_affinity_choose_the_node() -> None:
    async with running() as world:
        await world.patch(NODES, "node-0003", {"metadata": {"labels": {"disk": "fast"}}})
        await world.create(PODS, pod_body("one", nodeSelector={"disk": "fast"}))
        term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        await world.create(PODS, pod_body("two", affinity=affinity))
        await world.pass_time(1)
        assert [pod["spec"]["nodeName"] for pod in await world.all(PODS)] == ["node-0003"] * 2


@virtual
async def test_a_pinned_pod_that_does_not_fit_waits_with_the_usual_words() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("big", node="node-0001", containers=asking("9")))
        await world.pass_time(1)
        assert await why_not(world, "big") == (
            "0/3 nodes are available: 1 Insufficient cpu, "
            "2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            "preemption: 0/3 nodes are available: "
            "1 No preemption victims found for incoming pod, "
            "2 Preemption is not helpful for scheduling."
        )
        assert await world.reasons("big") == ["FailedScheduling"]


@virtual
async def test_a_pod_that_nothing_suits_is_told_why_by_every_node() -> None:
    async with running() as world:
        taint = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
        await world.patch(NODES, "node-0001", {"spec": {"taints": taint}})
        await world.patch(NODES, "node-0002", {"spec": {"unschedulable": True}})
        await world.patch(NODES, "node-0003", {"metadata": {"labels": {"disk": "fast"}}})
        await world.pass_time(1)
        await world.create(PODS, pod_body("one", nodeSelector={"disk": "slow"}))
        await world.pass_time(1)
        assert await why_not(world, "one") == (
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )


@virtual
async def test_a_pod_without_any_node_says_so() -> None:
    async with running(ComponentOptions(nodes=0)) as world:
        await world.create(PODS, pod_body("one"))
        await world.pass_time(1)
        assert await why_not(world, "one") == "no nodes available to schedule pods"


@virtual
async def test_a_waiting_pod_is_looked_at_again_when_its_node_changes_and_not_before() -> None:
    async with running() as world:
        taint = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
        await world.patch(NODES, "node-0001", {"spec": {"taints": taint}})
        await world.pass_time(1)
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.pass_time(1)
        world.ledger.writes.clear()
        await world.pass_time(600)
        assert world.ledger.paths(without=()) == []
        await world.patch(NODES, "node-0001", {"spec": {"taints": None}})
        await world.ready("one", within=10)


@virtual
async def test_a_waiting_pod_takes_the_room_that_another_leaves() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001", containers=asking("5")))
        await world.ready("one")
        await world.create(PODS, pod_body("two", node="node-0001", containers=asking("5")))
        await world.pass_time(2)
        assert "Insufficient cpu" in await why_not(world, "two")
        await world.delete(PODS, "one")
        await world.ready("two", within=10)


@virtual
async def test_a_node_that_comes_later_takes_the_pods_that_wait_for_it() -> None:
    async with running(ComponentOptions(nodes=0)) as world:
        await world.create(PODS, pod_body("one", node="edge-1"))
        await world.pass_time(1)
        await world.create(NODES, {"metadata": {"name": "edge-1"}})
        await world.ready("one", within=10)


@virtual
async def test_host_ports_are_given_once_per_node() -> None:
    async with running() as world:
        for name in ("one", "two", "three", "four"):
            await world.create(PODS, pod_body(name, containers=asking(port=9100)))
            await world.pass_time(0.5)
        assert (await why_not(world, "four")).startswith(
            "0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports."
        )
        nodes = [pod["spec"].get("nodeName") for pod in await world.all(PODS)]
        assert len({node for node in nodes if node}) == 3


@virtual
async def test_a_node_has_room_for_its_maximum_of_pods_only() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        for index in range(111):
            await world.create(PODS, pod_body(f"pod-{index:03}"))
        await world.pass_time(5)
        assert (await why_not(world, "pod-110")).startswith(
            "0/1 nodes are available: 1 Too many pods."
        )


@virtual
async def test_a_pod_of_higher_priority_makes_room_for_itself() -> None:
    async with running() as world:
        await priority_class(world, "high", 1000)
        for name, cpu in (("small", "2"), ("large", "5")):
            body = pod_body(name, node="node-0001", containers=asking(cpu))
            await world.create(PODS, body)
            await world.ready(name)
        body = pod_body(
            "urgent", node="node-0001", containers=asking("3"), priorityClassName="high"
        )
        await world.create(PODS, body)
        await world.pass_time(0.5)
        assert (await world.pod("urgent"))["status"]["nominatedNodeName"] == "node-0001"
        victim = await world.pod("large")
        assert condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        await world.ready("urgent", within=10)
        assert await world.pod_names() == ["small", "urgent"]
        assert "Preempted" in await world.reasons("large")


@virtual
async def test_no_pod_takes_the_room_that_preemption_made_for_another() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        await priority_class(world, "high", 1000)
        await world.create(PODS, pod_body("old", containers=asking("8")))
        await world.ready("old")
        await world.create(
            PODS, pod_body("urgent", containers=asking("8"), priorityClassName="high")
        )
        await world.pass_time(0.2)
        await world.create(PODS, pod_body("sly", containers=asking("1")))
        await world.ready("urgent", within=10)
        assert "Insufficient cpu" in await why_not(world, "sly")


@virtual
async def test_a_pod_that_must_not_preempt_waits() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        await priority_class(world, "polite", 1000, preemptionPolicy="Never")
        await world.create(PODS, pod_body("old", containers=asking("8")))
        await world.ready("old")
        body = pod_body("new", containers=asking("8"), priorityClassName="polite")
        await world.create(PODS, body)
        await world.pass_time(5)
        assert await why_not(world, "new") == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: not eligible due to preemptionPolicy=Never."
        )
        assert "old" in await world.pod_names()


@virtual
async def test_pods_of_other_schedulers_and_gated_pods_are_left_alone() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("theirs", schedulerName="another"))
        await world.create(PODS, pod_body("gated", schedulingGates=[{"name": "example.io/wait"}]))
        await world.pass_time(2)
        assert [pod["spec"].get("nodeName") for pod in await world.all(PODS)] == [None, None]
        await world.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
        await world.ready("gated", within=5)


@virtual
async def test_finished_pods_leave_their_room_to_others() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        done = asking("8")
        done[0]["image"] = "job:run-once"
        await world.create(PODS, pod_body("job", containers=done, restartPolicy="Never"))
        await world.pass_time(10)
        await world.create(PODS, pod_body("next", containers=asking("8")))
        await world.ready("next", within=10)


@virtual
async def test_a_restarted_scheduler_does_not_rewrite_a_condition_that_is_still_true() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", nodeSelector={"disk": "fast"}))
        await world.pass_time(1)
        api = world.api
        told = await world.reasons("one")
    async with running(api=api) as world:
        await world.pass_time(5)
        assert await world.reasons("one") == [*told, *told]
        assert world.ledger.paths() == []
