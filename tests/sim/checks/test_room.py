"""S1e: a pod that is taken on a full node, or started beside another one there, is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everynode.kube.requests import Request
from everynode.sim.plans.builders import at
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from everynode.sim.world import World
from tests.support.rogue import delete_pod, play_with_rogue

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

    def deed(world: World) -> Iterator[Request]:
        there = [pod for pod in world.record.cluster.pods.values() if pod.metadata.controller]
        [pod] = [pod for pod in there if pod.spec.node_name == FULL]
        yield delete_pod(pod)

    world = play_with_rogue(plan, deed, at=90.0)
    return {each.promise for each in world.violations}


@pytest.mark.parametrize(
    ("free", "cpu", "caught"),
    [(49, "150m", True), (50, "150m", False), (0, "100m", False), (0, "50m", False)],
)
def test_a_pod_is_taken_only_where_its_successor_fits(free: int, cpu: str, caught: bool) -> None:
    assert ("S1e" in _played({"maxUnavailable": 1}, free=free, cpu=cpu)) is caught
