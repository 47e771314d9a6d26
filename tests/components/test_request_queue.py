"""The request queue while requests and responses are lost."""

from __future__ import annotations

from everynode.components.run import ComponentOptions
from everynode.kube.resources import NODES, PODS
from tests.support.components_cluster import condition, pod_body, running, virtual

NAMES = [f"pod-{index}" for index in range(8)]


@virtual
async def test_lost_requests_are_sent_again() -> None:
    async with running(ComponentOptions(nodes=8), loss=0.15) as world:
        for index, name in enumerate(NAMES):
            await world.create(PODS, pod_body(name, node=f"node-{index + 1:04}"))
        for name in NAMES:
            await world.ready(name)
            change = {"spec": {"containers": [{"name": "agent", "image": "agent:v2"}]}}
            await world.patch(PODS, name, change)
        await world.pass_time(60)
        for name in NAMES:
            [status] = (await world.ready(name))["status"]["containerStatuses"]
            assert (status["image"], status["restartCount"]) == ("agent:v2", 1)

        await world.annotate_node("node-0001", stopped="true")
        await world.pass_time(80)
        assert len((await world.get(NODES, "node-0001"))["spec"]["taints"]) == 2
        assert condition(await world.pod("pod-0"), "Ready")["status"] == "False"
        await world.annotate_node("node-0001", stopped=None)
        await world.pass_time(20)
        assert condition(await world.pod("pod-0"), "Ready")["status"] == "True"

        for name in NAMES:
            await world.delete(PODS, name)
        await world.pass_time(30)
        assert await world.pod_names() == []
