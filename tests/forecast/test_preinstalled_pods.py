from __future__ import annotations

from typing import Any

from everynode.apiserver.transport.local import LocalTransport
from everynode.components.run import ComponentOptions
from everynode.forecast.preinstalled_pods import PreinstalledPods
from everynode.kube import verbs
from everynode.kube.requests import Response
from everynode.kube.resources import PODS
from tests.support.components_cluster import World, condition, pod_body, running, virtual


async def create_running(world: World, body: dict[str, Any]) -> Response:
    transport, settle = LocalTransport(world.api), world.components.simulated_nodes.add_running_pod
    preinstalled = PreinstalledPods(world.api.store, transport, world.clock, settle)
    return await preinstalled.create_running(verbs.create(PODS, body, namespace="default"))


@virtual
async def test_a_pod_runs_at_once_and_its_kubelet_takes_it_over() -> None:
    async with running() as world:
        answer = await create_running(world, pod_body("one", node="node-0002"))
        assert answer.status == 201
        assert condition(await world.pod("one"), "Ready")["status"] == "True"
        await world.pass_time(1)
        pod = await world.pod("one")
        [container] = pod["status"]["containerStatuses"]
        assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("node-0002", "Running")
        assert pod["status"]["podIP"].startswith("10.64.1.")
        assert (container["ready"], container["restartCount"]) == (True, 0)
        await world.delete(PODS, "one")
        await world.gone("one", within=5)


@virtual
async def test_its_kubelet_has_nothing_to_add() -> None:
    init = [{"name": "b", "image": "b"}, {"name": "c", "image": "c", "restartPolicy": "Always"}]
    async with running(ComponentOptions(nodes=1)) as world:
        world.ledger.writes.clear()
        body = pod_body("one", node="node-0001", initContainers=init)
        body["spec"]["readinessGates"] = [{"conditionType": "example.com/open"}]
        await create_running(world, body)
        before = await world.pod("one")
        await world.pass_time(60)
        assert world.ledger.writes == []
        assert await world.pod("one") == before
        conditions = before["status"]["conditions"]
        assert {each["status"] for each in conditions} == {"True"}
        assert len(before["status"]["initContainerStatuses"]) == 2


@virtual
async def test_a_pod_for_which_its_node_has_no_room_waits_like_any_other() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        large = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1000"}}}]
        await create_running(world, pod_body("one", node="node-0001", containers=large))
        await world.pass_time(1)
        scheduled = condition(await world.pod("one"), "PodScheduled")
        assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")


@virtual
async def test_what_the_server_refuses_is_refused() -> None:
    async with running(ComponentOptions(nodes=1)) as world:
        answer = await create_running(world, pod_body("one", node="node-0001", containers=[]))
        assert answer.status == 422
        assert await world.all(PODS) == []
