from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.kubelet.node import SimulatedNode, SimulationSettings
from everynode.components.kubelet.pod import PodState, SimulatedPod
from everynode.components.objects import FullNode, FullNodeMeta, FullPod
from everynode.components.run import ComponentOptions
from everynode.components.timers import NEVER
from everynode.kube.resources import PODS
from tests.support.components_cluster import LoopClock, World, pod_body, running, virtual


async def phase(world: World, name: str = "one") -> str:
    return str((await world.pod(name))["status"]["phase"])


@pytest.mark.parametrize("speed", [1, 20])
@virtual
async def test_a_pod_that_is_active_for_too_long_fails(speed: int) -> None:
    async with running(ComponentOptions(nodes=3, behaviour=Behaviour(speed=speed))) as world:
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


@virtual
async def test_a_kubelet_that_comes_back_keeps_how_a_container_ended_before() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        change = {"spec": {"containers": [{"name": "agent", "image": "agent:v2"}]}}
        await world.patch(PODS, "one", change)
        await world.pass_time(60)
        api = world.api
        before = (await world.pod("one"))["status"]["containerStatuses"][0]
    async with running(api=api) as world:
        await world.patch(PODS, "one", {"spec": {"activeDeadlineSeconds": 6000}})  # is observed
        await world.pass_time(5)
        status = (await world.pod("one"))["status"]
        assert status["observedGeneration"] == 3
        assert status["containerStatuses"][0]["lastState"] == before["lastState"] != {}


def simulated_pod(body: dict[str, Any]) -> SimulatedPod:
    """A pod that was just bound to its node."""
    node = SimulatedNode(
        FullNode(FullNodeMeta(name="node-0001")), 1, SimulationSettings(LoopClock(), Behaviour())
    )
    api_object = msgspec.convert({**body, "metadata": {**body["metadata"], "uid": "u"}}, FullPod)
    return SimulatedPod(api_object, node, "10.0.0.1", record_event=lambda *_: None)


def advance(pod: SimulatedPod, *, until: float) -> None:
    """Advance a pod whenever something is due, as its kubelet does."""
    now, calls = 0.0, 0
    pod.resume(now)
    pod.advance(now)
    while pod.due_at <= until:
        now, calls = max(now, pod.due_at), calls + 1 if pod.due_at <= now else 0
        assert calls < 3, f"due at {pod.due_at}, and nothing happens"
        pod.advance(now)


@virtual
async def test_nothing_is_due_any_more_in_a_pod_that_has_ended_before_its_deadline() -> None:
    for image, phase in (("run-once", "Succeeded"), ("crash-loop", "Failed")):
        body = pod_body("one", image=image, restartPolicy="Never", activeDeadlineSeconds=60)
        pod = simulated_pod(body)
        advance(pod, until=30.0)
        assert (pod.state, pod.phase, pod.due_at) == (PodState.FINISHED, phase, NEVER)


@virtual
async def test_containers_go_on_while_a_sidecar_before_them_comes_back() -> None:
    init = [{"name": "side", "image": "crash-loop", "restartPolicy": "Always"}]
    pod = simulated_pod(pod_body("one", image="slow-start", initContainers=init))
    advance(pod, until=40.0)
    assert not pod.init_containers[0].ready
    assert pod.containers[0].ready


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@virtual
async def test_everything_that_is_due_happens(policy: str) -> None:
    images = ("agent", "run-once", "crash-loop", "never-ready", "non-existent", "slow-start")
    for image, other, sidecar in product(images, images, (True, False)):
        init = {"name": "b", "image": other, **({"restartPolicy": "Always"} if sidecar else {})}
        spec: dict[str, Any] = {"restartPolicy": policy, "activeDeadlineSeconds": 700}
        advance(
            simulated_pod(pod_body("one", image=image, initContainers=[init], **spec)), until=1000.0
        )
