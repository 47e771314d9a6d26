"""Rolling updates, as the documents this product was born from describe them."""

from __future__ import annotations

import pytest
from tests.e2e.conftest import Play
from tests.e2e.stage import daemonset

VERSIONS = ["apps/v1", "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_node_gets_one_pod_and_an_update_replaces_them(
    play: Play, version: str
) -> None:
    async with play(nodes=4) as stage:
        manifest = daemonset(api_version=version)
        await stage.create(manifest)
        await stage.until_running("agent:v1", 4)
        seen = stage.observe(4)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 4)
        await stage.until_complete(manifest)
        assert seen.most_down == 1
        assert seen.most_together == 1
        assert seen.moved == ["node-0004", "node-0003", "node-0002", "node-0001"]


async def test_a_partition_holds_nodes_back_until_it_is_lowered(play: Play) -> None:
    async with play(nodes=5) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 5, "partition": 3})
        await stage.create(manifest)
        await stage.until_running("agent:v1", 5)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.settled(manifest)
        assert stage.running("agent:v2") == ["node-0004", "node-0005"]
        await stage.set_rolling(manifest, partition=0)
        await stage.until_running("agent:v2", 5)
