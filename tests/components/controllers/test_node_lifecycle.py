"""Node lifecycle: nodes without heartbeats, with bad conditions, and that recover."""

from __future__ import annotations

from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions
from everynode.kube.resources import NODES, PODS
from tests.support.components_cluster import World, condition, pod_body, running, virtual

TOLERANT = [{"operator": "Exists"}]
UNREACHABLE = "node.kubernetes.io/unreachable"


async def taints(world: World, name: str) -> list[str]:
    node = await world.get(NODES, name)
    found = node["spec"].get("taints") or []
    return sorted(f"{taint['key']}:{taint['effect']}" for taint in found)


async def ready(world: World, name: str) -> str:
    return str(condition(await world.get(NODES, name), "Ready")["status"])


@virtual
async def test_new_nodes_lose_their_first_taint_and_are_then_left_alone() -> None:
    async with running() as world:
        assert await taints(world, "node-0001") == []
        world.ledger.writes.clear()
        await world.pass_time(3600)
        assert world.ledger.paths(without=()) == []


@virtual
async def test_a_stopped_node_is_unknown_after_forty_seconds_and_tainted() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001", tolerations=TOLERANT))
        await world.ready("one")
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(39)
        assert await ready(world, "node-0001") == "True"
        await world.pass_time(2)
        node = await world.get(NODES, "node-0001")
        unknown = condition(node, "Ready")
        assert (unknown["status"], unknown["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert unknown["message"] == "Kubelet stopped posting node status."
        assert await taints(world, "node-0001") == [
            f"{UNREACHABLE}:NoExecute",
            f"{UNREACHABLE}:NoSchedule",
        ]
        assert all(taint["timeAdded"] for taint in node["spec"]["taints"])
        pod = await world.pod("one")
        assert condition(pod, "Ready")["status"] == "False"
        assert pod["status"]["phase"] == "Running"


@virtual
async def test_a_node_that_comes_back_is_ready_and_so_are_its_pods() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001", tolerations=TOLERANT))
        before = await world.ready("one")
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(100)
        await world.annotate_node("node-0001", stopped=None)
        await world.pass_time(1)
        assert await ready(world, "node-0001") == "True"
        assert await taints(world, "node-0001") == []
        after = await world.pod("one")
        assert condition(after, "Ready")["status"] == "True"
        assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


@virtual
async def test_a_stopped_node_starts_and_ends_nothing_until_it_is_back() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("old", node="node-0001"))
        await world.ready("old")
        await world.annotate_node("node-0001", stopped="true")
        await world.delete(PODS, "old")
        await world.create(PODS, pod_body("new", node="node-0001"))
        await world.pass_time(30)
        assert (await world.pod("new"))["status"]["phase"] == "Pending"
        assert "deletionTimestamp" in (await world.pod("old"))["metadata"]
        await world.annotate_node("node-0001", stopped=None)
        await world.gone("old", within=5)
        await world.ready("new", within=5)


@virtual
async def test_responses_that_arrive_after_the_watch_events_lose_nothing() -> None:
    async with running(lag=0.3) as world:
        await world.create(PODS, pod_body("one", node="node-0001", tolerations=TOLERANT))
        await world.ready("one")
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(42)
        assert len(await taints(world, "node-0001")) == 2
        assert condition(await world.pod("one"), "Ready")["status"] == "False"
        await world.annotate_node("node-0001", stopped=None)
        await world.pass_time(0.1)
        await world.annotate_node("node-0001", not_ready="true")
        await world.pass_time(12)  # a zone loses a node only every ten seconds
        assert await ready(world, "node-0001") == "False"
        assert await taints(world, "node-0001") == [
            "node.kubernetes.io/not-ready:NoExecute",
            "node.kubernetes.io/not-ready:NoSchedule",
        ]


@virtual
async def test_what_was_due_while_a_node_was_silent_happens_when_it_is_back() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.pass_time(0.5)
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(30)
        assert (await world.pod("one"))["status"]["phase"] == "Pending"
        await world.annotate_node("node-0001", stopped=None)
        await world.ready("one", within=3)


@virtual
async def test_the_kubelet_of_a_node_that_was_removed_does_nothing_more() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.pass_time(0.5)
        await world.delete(NODES, "node-0001")
        await world.pass_time(30)
        assert (await world.pod("one"))["status"]["phase"] == "Pending"


@virtual
async def test_a_short_silence_goes_unnoticed() -> None:
    async with running() as world:
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(30)
        await world.annotate_node("node-0001", stopped=None)
        await world.pass_time(5)
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(30)
        assert await ready(world, "node-0001") == "True"


@virtual
async def test_a_kubelet_that_is_not_ready_says_so_and_is_tainted() -> None:
    async with running() as world:
        await world.annotate_node("node-0001", not_ready="true")
        await world.pass_time(1)
        assert await ready(world, "node-0001") == "False"
        assert await taints(world, "node-0001") == [
            "node.kubernetes.io/not-ready:NoExecute",
            "node.kubernetes.io/not-ready:NoSchedule",
        ]
        await world.annotate_node("node-0001", not_ready=None)
        await world.pass_time(1)
        assert await taints(world, "node-0001") == []


@virtual
async def test_pressure_taints_the_node_and_evicts_the_least_important_pods() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("plain", node="node-0001"))
        name = "system-node-critical"
        await world.create(PODS, pod_body("critical", node="node-0001", priorityClassName=name))
        await world.ready("plain")
        await world.ready("critical")
        await world.annotate_node("node-0001", pressure="memory")
        await world.pass_time(30)
        assert await taints(world, "node-0001") == ["node.kubernetes.io/memory-pressure:NoSchedule"]
        plain = await world.pod("plain")
        assert plain["status"]["phase"] == "Failed"
        assert plain["status"]["reason"] == "Evicted"
        assert plain["status"]["message"] == "The node was low on resource: memory. "
        assert condition(plain, "DisruptionTarget")["reason"] == "TerminationByKubelet"
        assert (await world.pod("critical"))["status"]["phase"] == "Running"
        await world.annotate_node("node-0001", pressure=None)
        await world.pass_time(1)
        assert await taints(world, "node-0001") == []


@virtual
async def test_a_cordoned_node_is_tainted_and_other_peoples_taints_stay() -> None:
    async with running() as world:
        own = {"key": "team", "value": "a", "effect": "NoSchedule"}
        await world.patch(NODES, "node-0001", {"spec": {"unschedulable": True, "taints": [own]}})
        await world.pass_time(1)
        assert await taints(world, "node-0001") == [
            "node.kubernetes.io/unschedulable:NoSchedule",
            "team:NoSchedule",
        ]
        await world.patch(NODES, "node-0001", {"spec": {"unschedulable": None}})
        await world.pass_time(1)
        node = await world.get(NODES, "node-0001")
        assert node["spec"]["taints"] == [own]


@virtual
async def test_when_every_node_is_silent_no_pod_is_evicted() -> None:
    async with running() as world:
        for name in ("node-0001", "node-0002", "node-0003"):
            await world.annotate_node(name, stopped="true")
        await world.pass_time(200)
        assert await taints(world, "node-0003") == [f"{UNREACHABLE}:NoSchedule"]


@virtual
async def test_speed_shortens_the_patience_with_silent_nodes() -> None:
    async with running(ComponentOptions(nodes=3, behaviour=Behaviour(speed=10))) as world:
        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(4.5)
        assert await ready(world, "node-0001") == "Unknown"


@virtual
async def test_a_slow_node_takes_its_time() -> None:
    async with running() as world:
        await world.annotate_node("node-0001", slow="5")
        begun = world.clock.monotonic()
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        assert 10 <= world.clock.monotonic() - begun <= 15
