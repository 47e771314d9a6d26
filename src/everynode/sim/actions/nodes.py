"""Node actions: nodes join, leave, stop responding, get labels and taints, and are drained."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.objects import Pod
from everynode.api.resources import parse_amounts
from everynode.components.annotations import (
    CLOCK,
    NOT_READY,
    PRESSURE,
    SHUTDOWN,
    SLOW,
    STOPPED,
)
from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES, PODS
from everynode.sim.actions.context import TAINT, Act, ActionContext
from everynode.sim.history.record import NAMESPACE, RecordedNode
from everynode.sim.plans.plan import Action

# The annotations of a node that are removed when the faults end.
BEHAVIOUR_ANNOTATIONS: Final = (STOPPED, SLOW, NOT_READY, PRESSURE, SHUTDOWN)
FILLER: Final = "filler"  # the label of foreign pods that fill a node, and how their names begin
_EVICT_EVERY: Final = 5.0  # seconds until a refused eviction is retried


# --- Joining and leaving --------------------------------------------------------------------------


async def _add_node(ctx: ActionContext, action: Action) -> None:
    await _create_node(ctx, action.args["node"], action.args.get("labels", {}))


async def _create_node(ctx: ActionContext, name: str, labels: dict[str, str]) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    await ctx.client.write(verbs.create(NODES, body), bytes)


async def _mass_join(ctx: ActionContext, action: Action) -> None:
    """Many nodes join at the same moment."""
    for number in range(int(action.args["count"])):
        args = {"node": f"mass-{number:02d}"}
        await ctx.world.runner.run(Action("add-node", at=action.at, args=args))


async def _remove_node(ctx: ActionContext, action: Action) -> None:
    await ctx.client.write(verbs.delete(NODES, ctx.node_name(action)), bytes)


async def _replace_node(ctx: ActionContext, action: Action) -> None:
    """A node is deleted and another one joins under its name."""
    name = ctx.node_name(action)
    node = ctx.world.record.cluster.nodes.get(name)
    labels = node.metadata.labels if node is not None else {}
    await ctx.client.write(verbs.delete(NODES, name), bytes)
    await ctx.world.clock.sleep(action.seconds)
    await _create_node(ctx, name, labels)


# --- Kubelets -------------------------------------------------------------------------------------


async def _lose_node(ctx: ActionContext, action: Action) -> None:
    """A kubelet stops responding and comes back."""
    await _annotate_for(ctx, action, {STOPPED: "true"})


async def _lose_zone(ctx: ActionContext, action: Action) -> None:
    for name, node in sorted(ctx.world.record.cluster.nodes.items()):
        zone = node.metadata.labels.get("topology.kubernetes.io/zone", "")
        if zone == action.args.get("zone", "zone-a"):
            await ctx.tolerate_error(ctx.annotate_node(name, {STOPPED: "true"}))


async def _find_nodes(ctx: ActionContext, action: Action) -> None:
    """All kubelets are back."""
    for name in sorted(ctx.world.record.cluster.nodes):
        await ctx.tolerate_error(ctx.annotate_node(name, {STOPPED: None}))


async def _unready_node(ctx: ActionContext, action: Action) -> None:
    await _annotate_for(ctx, action, {NOT_READY: "true"})


async def _skew_node(ctx: ActionContext, action: Action) -> None:
    """The clock of a node is ahead by this many seconds; a negative number: behind."""
    by = float(action.args.get("by", 3600))
    record = ctx.world.record
    record.max_clock_lead = max(record.max_clock_lead, by)
    await _annotate_for(ctx, action, {CLOCK: str(by)})


async def _slow_node(ctx: ActionContext, action: Action) -> None:
    await _annotate_for(ctx, action, {SLOW: str(action.args.get("factor", 10))})


async def _press_node(ctx: ActionContext, action: Action) -> None:
    """A node runs out of memory and evicts its pods."""
    await _annotate_for(ctx, action, {PRESSURE: "memory"})


async def _shut_node_down(ctx: ActionContext, action: Action) -> None:
    """A node shuts down gracefully and comes back; older kubelets do not report the condition."""
    await _annotate_for(ctx, action, {SHUTDOWN: action.args.get("value", "true")})


async def _set_lifecycle(ctx: ActionContext, action: Action) -> None:
    """A node lifecycle condition of a node becomes True, and False when the time is over."""
    name, condition = ctx.node_name(action), action.args["condition"]
    await write_lifecycle(ctx, name, condition, "True")
    if action.seconds:
        later = _clear_later(ctx, action.seconds, name, condition)
        ctx.world.loop.create_task(later)


async def _clear_later(ctx: ActionContext, seconds: float, name: str, condition: str) -> None:
    await ctx.world.clock.sleep(seconds)
    await ctx.tolerate_error(write_lifecycle(ctx, name, condition, "False"))


async def write_lifecycle(ctx: ActionContext, name: str, condition: str, status: str) -> None:
    """Write a condition of a node, as an administrator or the kubelet does."""
    body = {"status": {"conditions": [{"type": condition, "status": status}]}}
    patch = verbs.patch(NODES, name, body, kind=STRATEGIC_PATCH, subresource="status")
    await ctx.client.write(patch, bytes)


async def _annotate_for(ctx: ActionContext, action: Action, words: dict[str, Any]) -> None:
    """Annotate the node, and remove the annotation when the action's duration is over."""
    name = ctx.node_name(action)
    await ctx.annotate_node(name, words)
    if action.seconds:
        later = _annotate_later(ctx, action.seconds, name, dict.fromkeys(words))
        ctx.world.loop.create_task(later)


async def _annotate_later(
    ctx: ActionContext, seconds: float, name: str, words: dict[str, Any]
) -> None:
    await ctx.world.clock.sleep(seconds)
    await ctx.tolerate_error(ctx.annotate_node(name, words))


# --- Full nodes -----------------------------------------------------------------------------------


async def _fill_node(ctx: ActionContext, action: Action) -> None:
    """A foreign pod takes all cpu of a node but `free`, until the action's duration is over.

    What pods request that are there already is left to them.
    """
    node = ctx.node_name(action)
    request = verbs.get(NODES, node)
    found = await ctx.client.read(request, msgspec.json.Decoder(RecordedNode).decode)
    cpu = parse_amounts(found.status.allocatable).get("cpu", 0)
    for pod in ctx.pods():
        if pod.node == node and not pod.finished:
            cpu -= sum(
                parse_amounts(each.resources.requests).get("cpu", 0) for each in pod.spec.containers
            )
    resources = {"requests": {"cpu": f"{max(0, cpu - int(action.args.get('free', 0)))}m"}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{FILLER}-{node}", "labels": {FILLER: node}},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "filler", "image": "filler:v1", "resources": resources}],
        },
    }
    await ctx.client.write(verbs.create(PODS, body, namespace=NAMESPACE), bytes)
    if action.seconds:
        ctx.world.loop.create_task(_empty_later(ctx, action.seconds, node))


async def _empty_later(ctx: ActionContext, seconds: float, node: str) -> None:
    await ctx.world.clock.sleep(seconds)
    await empty_node(ctx, node)


async def empty_node(ctx: ActionContext, node: str) -> None:
    """Remove the pod that fills a node."""
    await ctx.tolerate_error(ctx.delete(PODS, f"{FILLER}-{node}", grace_seconds=0))


# --- Labels, taints and drains --------------------------------------------------------------------


async def _label_node(ctx: ActionContext, action: Action) -> None:
    body = {"metadata": {"labels": action.args["labels"]}}
    await ctx.client.write(verbs.patch(NODES, ctx.node_name(action), body), bytes)


async def _taint_node(ctx: ActionContext, action: Action) -> None:
    """Taint a node; a taint with a key of its own stays when the faults end."""
    effect, key = action.args.get("effect", "NoSchedule"), action.args.get("key", TAINT)
    await ctx.set_taints(ctx.node_name(action), [{"key": key, "effect": effect}])


async def _untaint_node(ctx: ActionContext, action: Action) -> None:
    await ctx.set_taints(ctx.node_name(action), [])


async def _cordon_node(ctx: ActionContext, action: Action) -> None:
    body = {"spec": {"unschedulable": True}}
    await ctx.client.write(verbs.patch(NODES, ctx.node_name(action), body), bytes)


async def _evict_pod(ctx: ActionContext, action: Action) -> None:
    pod = ctx.pick_pod(action)
    if pod is not None:
        await _evict(ctx, pod)


async def _drain_node(ctx: ActionContext, action: Action) -> None:
    """`kubectl drain`: cordon a node, then evict its pods, retrying until the budget allows it."""
    node = ctx.node_name(action)
    cordon = Action("cordon-node", at=action.at, args={"node": node})
    await ctx.world.runner.run(cordon)
    ctx.world.loop.create_task(_drain(ctx, node, action.seconds))


async def _drain(ctx: ActionContext, node: str, seconds: float) -> None:
    world = ctx.world
    there = [pod for pod in ctx.pods() if pod.node == node and pod.metadata.controller]
    wanted = [pod.uid for pod in there]
    deadline = world.loop.time() + seconds
    while wanted and world.loop.time() < deadline and not world.faults.lifted:
        found = [world.record.cluster.pods.get(uid) for uid in wanted]
        left = [pod for pod in found if pod is not None and not pod.terminating]
        for pod in left:
            await ctx.tolerate_error(_evict(ctx, pod))
        wanted = [pod.uid for pod in left]
        await world.clock.sleep(_EVICT_EVERY)


async def _evict(ctx: ActionContext, pod: Pod) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": NAMESPACE},
    }
    request = verbs.create(PODS, body, namespace=NAMESPACE, name=pod.name, subresource="eviction")
    await ctx.client.write(request, bytes)


ACTIONS: Final[dict[str, Act]] = {
    "add-node": _add_node,
    "mass-join": _mass_join,
    "remove-node": _remove_node,
    "replace-node": _replace_node,
    "fill-node": _fill_node,
    "lose-node": _lose_node,
    "lose-zone": _lose_zone,
    "find-nodes": _find_nodes,
    "unready-node": _unready_node,
    "slow-node": _slow_node,
    "skew-node": _skew_node,
    "press-node": _press_node,
    "shut-node-down": _shut_node_down,
    "set-lifecycle": _set_lifecycle,
    "label-node": _label_node,
    "taint-node": _taint_node,
    "untaint-node": _untaint_node,
    "cordon-node": _cordon_node,
    "evict-pod": _evict_pod,
    "drain-node": _drain_node,
}
