"""S1e: a pod that is taken on a full node, or started beside another one there, is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.kube import verbs
from everynode.kube.resources import PODS
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import RecordedRequest
from everynode.sim.plans.builders import at
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from everynode.sim.world import World

KINDS = ("nodes", "pods", "controllerrevisions.apps", "daemonsets.apps.kruise.io")
FULL = "node-0002"


def _played(rolling: dict[str, Any], *, free: int, cpu: str = "150m") -> set[str]:
    """The broken promises when a rogue takes the pod of a node that has `free` cpu left."""
    requests = {"requests": {"cpu": "100m"}}
    containers = [{"name": "agent", "image": "agent:v1", "resources": requests}]
    plan = Plan(
        1,
        nodes=3,
        manifests=(daemonset(rolling=rolling, template={"containers": containers}),),
        actions=(
            at(6.0, "fill-node", node=FULL, free=free),
            at(80.0, "set-requests", cpu=cpu),
            at(80.0, "freeze", 30.0),
        ),
        quiet_at=120.0,
    )
    loop = SimLoop(1)
    world = World(loop, plan)

    async def misbehave() -> None:
        await world.clock.sleep(90.0)
        there = [pod for pod in world.record.cluster.pods.values() if pod.metadata.controller]
        [pod] = [pod for pod in there if pod.spec.node_name == FULL]
        version = pod.metadata.resource_version
        request = verbs.delete(PODS, pod.name, namespace="default", uid=pod.uid, version=version)
        known = dict.fromkeys(KINDS, world.api.store.version)
        time, now = world.clock.monotonic(), world.clock.now()
        world.record.current_request = RecordedRequest(
            "controller-9.1", request, time, now, time, known
        )
        assert (await world.api.handle(request)).ok
        world.record.current_request = None

    rogue = loop.create_task(misbehave())
    loop.run_until_complete(world.run())
    rogue.result()
    loop.close()
    return {each.promise for each in world.violations}


@pytest.mark.parametrize(
    ("free", "cpu", "caught"),
    [(49, "150m", True), (50, "150m", False), (0, "100m", False), (0, "50m", False)],
)
def test_a_pod_is_taken_only_where_its_successor_fits(free: int, cpu: str, caught: bool) -> None:
    assert ("S1e" in _played({"maxUnavailable": 1}, free=free, cpu=cpu)) is caught
