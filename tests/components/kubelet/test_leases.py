"""Node leases are renewed for control planes that need them."""

from __future__ import annotations

from everynode.components.kubelet.leases import NAMESPACE
from everynode.components.run import ComponentOptions
from everynode.kube.resources import LEASES
from tests.support.components_cluster import Object, World, running, virtual


async def leases(world: World) -> dict[str, Object]:
    found = await world.all(LEASES)
    assert all(each["metadata"]["namespace"] == NAMESPACE for each in found)
    return {each["metadata"]["name"]: each["spec"] for each in found}


@virtual
async def test_living_nodes_renew_their_leases_and_stopped_ones_do_not() -> None:
    async with running(ComponentOptions(nodes=3, heartbeat=10.0)) as world:
        await world.pass_time(15)
        before = await leases(world)
        assert sorted(before) == ["node-0001", "node-0002", "node-0003"]
        assert before["node-0001"]["holderIdentity"] == "node-0001"
        await world.annotate_node("node-0002", stopped="true")
        await world.pass_time(20)
        after = await leases(world)
        renewed = [name for name in after if after[name]["renewTime"] > before[name]["renewTime"]]
        assert renewed == ["node-0001", "node-0003"]


@virtual
async def test_renewals_are_spread_and_cost_one_write_each() -> None:
    async with running(ComponentOptions(nodes=20, heartbeat=10.0)) as world:
        await world.pass_time(5)
        world.ledger.writes.clear()
        await world.pass_time(1)
        assert 1 <= len(world.ledger.writes) <= 3
        await world.pass_time(9)
        assert len(world.ledger.writes) == 20
