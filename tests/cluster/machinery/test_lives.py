from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.lives import Course, PodLife
from everynode.cluster.machinery.objects import Node, NodeMeta, Pod
from everynode.cluster.machinery.run import Options
from everynode.cluster.machinery.seats import Seat, Setting
from everynode.cluster.machinery.timers import NEVER
from everynode.kube.resources import PODS
from tests.cluster.machinery.world import LoopClock, World, pod_body, running, virtual


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


def life_of(body: dict[str, Any]) -> PodLife:
    """The life of a pod that has just come to its node."""
    seat = Seat(Node(NodeMeta(name="node-0001")), 1, Setting(LoopClock(), Behaviour()))
    pod = msgspec.convert({**body, "metadata": {**body["metadata"], "uid": "u"}}, Pod)
    return PodLife(pod, seat, "10.0.0.1", tell=lambda *_: None)


def live(life: PodLife, *, until: float) -> None:
    """Look at a pod whenever something is due, as its kubelet does."""
    now, looks = 0.0, 0
    life.resume(now)
    life.advance(now)
    while life.until <= until:
        now, looks = max(now, life.until), looks + 1 if life.until <= now else 0
        assert looks < 3, f"due at {life.until}, and nothing happens"
        life.advance(now)


@virtual
async def test_nothing_is_due_any_more_in_a_pod_that_has_ended_before_its_deadline() -> None:
    for image, phase in (("run-once", "Succeeded"), ("crash-loop", "Failed")):
        body = pod_body("one", image=image, restartPolicy="Never", activeDeadlineSeconds=60)
        life = life_of(body)
        live(life, until=30.0)
        assert (life.course, life.phase, life.until) == (Course.OVER, phase, NEVER)


@virtual
async def test_containers_go_on_while_a_sidecar_before_them_comes_back() -> None:
    init = [{"name": "side", "image": "crash-loop", "restartPolicy": "Always"}]
    life = life_of(pod_body("one", image="slow-start", initContainers=init))
    live(life, until=40.0)
    assert not life.init[0].ready
    assert life.containers[0].ready


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@virtual
async def test_whatever_is_due_happens(policy: str) -> None:
    images = ("agent", "run-once", "crash-loop", "never-ready", "non-existent", "slow-start")
    for image, other, sidecar in product(images, images, (True, False)):
        init = {"name": "b", "image": other, **({"restartPolicy": "Always"} if sidecar else {})}
        spec: dict[str, Any] = {"restartPolicy": policy, "activeDeadlineSeconds": 700}
        live(life_of(pod_body("one", image=image, initContainers=[init], **spec)), until=1000.0)
