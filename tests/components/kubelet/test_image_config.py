"""The ConfigMap of images changes the behaviour of running pods."""

from __future__ import annotations

from everynode.components.kubelet.image_config import (
    CONFIG_MAPS,
    IMAGE_CONFIG_KEY,
    IMAGE_CONFIG_NAME,
    IMAGE_CONFIG_NAMESPACE,
)
from everynode.kube import verbs
from everynode.kube.resources import PODS
from tests.support.components_cluster import World, condition, pod_body, running, virtual


async def say(world: World, text: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": IMAGE_CONFIG_NAME},
        "data": {IMAGE_CONFIG_KEY: text},
    }
    request = verbs.apply(
        CONFIG_MAPS,
        IMAGE_CONFIG_NAME,
        body,
        namespace=IMAGE_CONFIG_NAMESPACE,
        manager="test",
        force=True,
    )
    await world.ask(request)
    await world.pass_time(0.1)


@virtual
async def test_an_image_that_begins_to_crash_takes_its_running_containers_with_it() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.create(PODS, pod_body("two", node="node-0001", image="other:v1"))
        await world.ready("one")
        await world.ready("two")
        await say(world, "# said by a test\nagent:* fail=crash\n")
        await world.pass_time(10)
        one, two = await world.pod("one"), await world.pod("two")
        [status] = one["status"]["containerStatuses"]
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert condition(two, "Ready")["status"] == "True"
        await say(world, "")
        await world.ready("one", within=3)


@virtual
async def test_an_image_that_can_be_pulled_at_last_is_pulled_at_once() -> None:
    async with running() as world:
        await say(world, "agent:v1 fail=pull")
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.pass_time(200)
        assert (await world.pod("one"))["status"]["phase"] == "Pending"
        await say(world, "agent:v1 fail=none pull=3")
        await world.pass_time(3.5)
        assert (await world.pod("one"))["status"]["phase"] == "Pending"
        await world.ready("one", within=2)


@virtual
async def test_lines_that_cannot_be_parsed_become_events() -> None:
    async with running() as world:
        await say(world, "agent:v1 fail=maybe\nother:v1 fail=crash")
        assert await world.reasons(IMAGE_CONFIG_NAME) == ["BadBehaviour"]
