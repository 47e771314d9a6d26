"""Pod and image actions: pods fail or cannot be deleted, images change their behaviour."""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.times import format_time
from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import PODS
from everynode.sim.actions.context import STUCK_FINALIZER, Act, ActionContext, set_name
from everynode.sim.history.record import NAMESPACE
from everynode.sim.plans.plan import Action

_POLL: Final = 0.5  # seconds between two checks for new pull pods


async def _fail_pod(ctx: ActionContext, action: Action) -> None:
    """A pod ends with phase Failed."""
    pod = ctx.pick_pod(action)
    if pod is None:
        return
    ended = {"exitCode": 137, "finishedAt": format_time(ctx.world.clock.now())}
    statuses = [
        {**msgspec.to_builtins(each), "ready": False, "state": {"terminated": ended}}
        for each in pod.status.container_statuses
    ]
    body = {"status": {"phase": "Failed", "containerStatuses": statuses}}
    request = verbs.patch(
        PODS, pod.name, body, kind=STRATEGIC_PATCH, namespace=NAMESPACE, subresource="status"
    )
    await ctx.client.write(request, bytes)


async def _restart_container(ctx: ActionContext, action: Action) -> None:
    """The kubelet restarts a pod's containers with the images that they run."""
    pod = ctx.pick_pod(action)
    if pod is None:
        return
    statuses = [
        {
            **msgspec.to_builtins(each),
            "containerID": f"{each.container_id}+1",
            "restartCount": each.restart_count + 1,
        }
        for each in pod.status.container_statuses
    ]
    body = {"status": {"containerStatuses": statuses}}
    request = verbs.patch(
        PODS, pod.name, body, kind=STRATEGIC_PATCH, namespace=NAMESPACE, subresource="status"
    )
    await ctx.client.write(request, bytes)


async def _stick_pod(ctx: ActionContext, action: Action) -> None:
    """A finalizer keeps a pod from being removed."""
    pod = ctx.pick_pod(action)
    if pod is not None:
        await ctx.patch(PODS, pod.name, {"metadata": {"finalizers": [STUCK_FINALIZER]}})


async def _stick_pull_pods(ctx: ActionContext, action: Action) -> None:
    """Turn image pre-pulling on, and keep its pull pods from being removed by a finalizer."""
    name = set_name(action)
    annotations = {keys.PREDOWNLOAD_PARALLELISM: "1", keys.PREDOWNLOAD_TIMEOUT: "20"}
    await ctx.patch_daemonset(name, {"metadata": {"annotations": annotations}})
    ctx.world.loop.create_task(_block_pull_pods(ctx, action.seconds))


async def _block_pull_pods(ctx: ActionContext, seconds: float) -> None:
    world = ctx.world
    deadline = world.loop.time() + seconds
    body = {"metadata": {"finalizers": [STUCK_FINALIZER]}}
    while world.loop.time() < deadline and not world.faults.lifted:
        for pod in ctx.pods():
            free = STUCK_FINALIZER not in pod.metadata.finalizers and not pod.terminating
            if keys.PULL_POD_OWNER in pod.metadata.labels and free:
                await ctx.tolerate_error(ctx.patch(PODS, pod.name, body))
        await world.clock.sleep(_POLL)


async def _quirk(ctx: ActionContext, action: Action) -> None:
    """Images behave differently from now on: lines of `IMAGE WORDS`."""
    await ctx.set_images(str(action.args.get("images", "")))


ACTIONS: Final[dict[str, Act]] = {
    "fail-pod": _fail_pod,
    "restart-container": _restart_container,
    "stick-pod": _stick_pod,
    "stick-pullers": _stick_pull_pods,
    "quirk": _quirk,
}
