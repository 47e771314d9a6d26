"""Pods of nodes that no longer exist are removed."""

from __future__ import annotations

from everynode.components.run import ComponentOptions
from everynode.kube.resources import NODES, PODS
from tests.support.components_cluster import pod_body, running, virtual


@virtual
async def test_pods_of_a_node_that_was_removed_go_after_a_while() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        await world.delete(NODES, "node-0001")
        await world.pass_time(35)
        assert await world.pod_names() == ["one"]
        await world.pass_time(10)
        assert await world.pod_names() == []


@virtual
async def test_pods_stay_when_their_node_comes_back_in_time() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        await world.delete(NODES, "node-0001")
        await world.pass_time(20)
        await world.create(NODES, {"metadata": {"name": "node-0001"}})
        await world.pass_time(60)
        assert await world.pod_names() == ["one"]


@virtual
async def test_pods_that_were_given_to_a_node_that_never_was_go_too() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", nodeName="nowhere"))
        await world.pass_time(45)
        assert await world.pod_names() == []


@virtual
async def test_pods_whose_node_was_removed_before_the_start_are_deleted_too() -> None:
    async with running() as world:
        await world.create(PODS, pod_body("one", node="node-0003"))
        await world.ready("one")
        api = world.api
    await world.delete(NODES, "node-0003")
    async with running(ComponentOptions(nodes=2), api=api) as world:
        await world.pass_time(45)
        assert await world.pod_names() == []
