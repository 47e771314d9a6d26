"""S1d: nothing justifies taking a pod for a version of which no pod was ever accepted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everynode.kube.requests import Request
from everynode.sim.plans.builders import at, set_image
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from everynode.sim.world import World
from tests.support.rogue import delete_pod, play_with_rogue, running_pods


@pytest.mark.parametrize("fault", ["refuse-image", "quota"])
def test_a_rogue_that_takes_a_pod_for_a_refused_version_is_caught(fault: str) -> None:
    plan = Plan(
        1,
        nodes=3,
        manifests=(daemonset(),),
        actions=(at(10.0, fault, 60.0, image="agent:v2"), set_image(20.0)),
        quiet_at=60.0,
    )

    def deed(world: World) -> Iterator[Request]:
        yield delete_pod(running_pods(world)[0])

    world = play_with_rogue(plan, deed, at=30.0)
    promises = {each.promise for each in world.violations}
    # The simulated quota has room once the old pod is gone, so that pods are taken there.
    assert ("S1d" in promises) is (fault == "refuse-image")
