"""A rogue controller: performs writes in a world that no rule justifies, beside the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everynode.api.objects import Pod
from everynode.kube import verbs
from everynode.kube.requests import Request
from everynode.kube.resources import PODS
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import RecordedRequest
from everynode.sim.plans.plan import Plan
from everynode.sim.world import World

Deed = Callable[[World], Iterator[Request]]
ROGUE = "controller-9.1"
_WATCHED = (
    "nodes",
    "pods",
    "controllerrevisions.apps",
    "daemonsets.apps",
    "daemonsets.apps.kruise.io",
)


def play_with_rogue(plan: Plan, deed: Deed, *, at: float) -> World:
    """Play a plan in which a rogue sends the requests of `deed` at this time."""
    loop = SimLoop(1)
    world = World(loop, plan)

    async def misbehave() -> None:
        await world.clock.sleep(at)
        for request in deed(world):
            time, now = world.clock.monotonic(), world.clock.now()
            # The rogue has seen everything up to now, so no older view justifies its write.
            known_versions = dict.fromkeys(_WATCHED, world.api.store.version)
            world.record.current_request = RecordedRequest(
                ROGUE, request, time, now, time, known_versions
            )
            response = await world.api.handle(request)
            world.record.current_request = None
            assert response.ok, response.body

    rogue = loop.create_task(misbehave())
    loop.run_until_complete(world.run())
    rogue.result()
    loop.close()
    return world


def running_pods(world: World) -> list[Pod]:
    """The pods that are not terminating, by node."""
    pods = world.record.cluster.pods.values()
    return sorted((pod for pod in pods if not pod.terminating), key=lambda pod: pod.spec.node_name)


def delete_pod(pod: Pod) -> Request:
    """The request that deletes a pod as a controller would."""
    meta = pod.metadata
    return verbs.delete(
        PODS, pod.name, namespace="default", uid=meta.uid, version=meta.resource_version
    )
