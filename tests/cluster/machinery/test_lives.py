from __future__ import annotations

import pytest

from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.run import Options
from everynode.kube.resources import PODS
from tests.cluster.machinery.world import World, pod_body, running, virtual


async def phase(world: World, name: str = "one") -> str:
    return str((await world.pod(name))["status"]["phase"])


@pytest.mark.parametrize("speed", [1, 20])
@virtual
async def test_a_pod_that_is_active_for_too_long_fails(speed: int) -> None:
    async with running(Options(nodes=3, behaviour=Behaviour(speed=speed))) as world:
        await world.create(PODS, pod_body("one", node="node-0001", activeDeadlineSeconds=60))
        await world.ready("one")
        await world.pass_time(50 / speed)
        assert await phase(world) == "Running"
        await world.pass_time(15 / speed)
        status = (await world.pod("one"))["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert status["message"] == "Pod was active on the node longer than the specified deadline"
        assert "terminated" in status["containerStatuses"][0]["state"]
        assert (await world.reasons("one"))[-1] == "DeadlineExceeded"


@virtual
async def test_a_deadline_that_is_set_later_counts_from_the_start() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        await world.pass_time(40)
        await world.patch(PODS, "one", {"spec": {"activeDeadlineSeconds": 60}})
        await world.pass_time(5)
        assert await phase(world) == "Running"
        await world.pass_time(20)
        assert await phase(world) == "Failed"


@virtual
async def test_a_kubelet_that_comes_back_minds_the_deadline() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001", activeDeadlineSeconds=60))
        await world.ready("one")
        api = world.api
    await world.pass_time(70)
    async with running(api=api) as world:
        await world.pass_time(1)
        assert await phase(world) == "Failed"


@virtual
async def test_a_kubelet_that_comes_back_finds_init_containers_done_and_sidecars_running() -> None:
    init = [{"name": "b", "image": "b"}, {"name": "c", "image": "c", "restartPolicy": "Always"}]
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001", initContainers=init))
        await world.ready("one")
        api = world.api
    async with running(api=api) as world:
        await world.pass_time(5)
        status = (await world.pod("one"))["status"]
        states = [list(each["state"]) for each in status["initContainerStatuses"]]
        assert (status["phase"], states) == ("Running", [["terminated"], ["running"]])
