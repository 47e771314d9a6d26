"""Actions of what protects pods: the program behind a preDelete hook, PodDisruptionBudgets."""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.kube import verbs
from everynode.kube.resources import PODS, Resource
from everynode.sim.actions.context import Act, ActionContext, set_name
from everynode.sim.history.record import NAMESPACE
from everynode.sim.plans.plan import Action

_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


async def release_hooks(ctx: ActionContext, action: Action) -> None:
    """Act as the hook's program: remove the hook label from every pod that waits for it."""
    label = action.args.get("label", "hook")
    if ctx.world.loop.time() < ctx.hooks_unanswered_until:
        return
    for pod in ctx.pods():
        if pod.metadata.labels.get(keys.LIFECYCLE_STATE):
            body = {"metadata": {"labels": {label: None}}}
            await ctx.tolerate_error(ctx.patch(PODS, pod.name, body))


async def _hold_hooks(ctx: ActionContext, action: Action) -> None:
    """Keep the hook's program from answering for a while."""
    ctx.hooks_unanswered_until = ctx.world.loop.time() + action.seconds


async def _protect(ctx: ActionContext, action: Action) -> None:
    """Create a PodDisruptionBudget for the pods of a DaemonSet."""
    name = set_name(action)
    body = {
        "apiVersion": _BUDGETS.api_version,
        "kind": _BUDGETS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": action.args["least"],
            "selector": {"matchLabels": {"app": name}},
        },
    }
    await ctx.client.write(verbs.create(_BUDGETS, body, namespace=NAMESPACE), bytes)


ACTIONS: Final[dict[str, Act]] = {
    "release-hooks": release_hooks,
    "hold-hooks": _hold_hooks,
    "protect": _protect,
}
