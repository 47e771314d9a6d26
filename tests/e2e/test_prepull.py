"""Images are pulled ahead of an update, on a few nodes at a time."""

from __future__ import annotations

from typing import Any

from everynode.api.keys import PULL_POD_OWNER
from everynode.api.objects import Pod
from everynode.components.kubelet.behaviour import Behaviour
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

PARALLELISM = "apps.kruise.io/image-predownload-parallelism"


def pulling(stage: Stage) -> list[Pod]:
    return [pod for pod in stage.all_pods() if PULL_POD_OWNER in pod.metadata.labels]


def pulled_ahead(parallelism: str, **more: Any) -> dict[str, Any]:
    manifest = daemonset(**more)
    manifest["metadata"]["annotations"] = {PARALLELISM: parallelism}
    return manifest


async def test_images_are_pulled_ahead_on_the_given_number_of_nodes_at_a_time(play: Play) -> None:
    async with play(nodes=4, behaviour=Behaviour(speed=30.0)) as stage:
        most = 0
        nodes: set[str] = set()

        def count(*_: object) -> None:
            nonlocal most
            active = [pod for pod in pulling(stage) if not pod.terminating]
            most = max(most, len(active))
            nodes.update(pod.spec.node_name for pod in active if pod.spec.node_name)

        manifest = pulled_ahead("2", rolling={"partition": 4})
        await stage.start(manifest, 4)
        stage.pods.subscribe(count)
        await stage.set_image(manifest, "agent:v2")
        await stage.until(lambda: len(nodes) == 4, "every node has had a pull pod")
        await stage.until(lambda: not pulling(stage), "the pull pods are gone")
        assert most == 2
        assert len(stage.running("agent:v1")) == 4  # the partition holds them all the same
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v2", 4)


async def test_nothing_is_fetched_ahead_unless_it_is_asked_for(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"partition": 2})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:v2")
        await stage.settled(manifest)
        assert not pulling(stage)


async def test_an_image_that_cannot_be_fetched_blocks_nothing(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = pulled_ahead("1", rolling={"partition": 2})
        await stage.start(manifest, 2)
        await stage.set_image(manifest, "agent:non-existent")
        await stage.until(lambda: pulling(stage), "a pull pod tries")
        await stage.set_image(manifest, "agent:v3")
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v3", 2)
        await stage.until(lambda: not pulling(stage), "the pull pods are gone")
