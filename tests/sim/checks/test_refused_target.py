"""S1d: nothing justifies taking a pod for a version of which no pod was ever accepted."""

from __future__ import annotations

import pytest

from everynode.kube import verbs
from everynode.kube.resources import PODS
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import RecordedRequest
from everynode.sim.plans.builders import at, set_image
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from everynode.sim.world import World

KINDS = ("nodes", "pods", "controllerrevisions.apps", "daemonsets.apps.kruise.io")


@pytest.mark.parametrize("fault", ["refuse-image", "quota"])
def test_a_rogue_that_takes_a_pod_for_a_refused_version_is_caught(fault: str) -> None:
    plan = Plan(
        1,
        nodes=3,
        manifests=(daemonset(),),
        actions=(at(10.0, fault, 60.0, image="agent:v2"), set_image(20.0)),
        quiet_at=60.0,
    )
    loop = SimLoop(1)
    world = World(loop, plan)

    async def misbehave() -> None:
        await world.clock.sleep(30.0)
        pods = [pod for pod in world.record.cluster.pods.values() if not pod.terminating]
        request = verbs.delete(
            PODS,
            pods[0].name,
            namespace="default",
            uid=pods[0].uid,
            version=pods[0].metadata.resource_version,
        )
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
    promises = {each.promise for each in world.violations}
    # The simulated quota has room once the old pod is gone, so that pods are taken there.
    assert ("S1d" in promises) is (fault == "refuse-image")
