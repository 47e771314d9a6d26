"""The actions of a plan by name, and the runner that performs them on a world."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from everynode.api.keys import NODE_LIFECYCLE
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.resources import PODS
from everynode.sim.actions import hooks, intruders, nodes, pods, processes, servers, users
from everynode.sim.actions.context import STUCK_FINALIZER, TAINT, Act, ActionContext
from everynode.sim.plans.plan import Action, Object

if TYPE_CHECKING:
    from everynode.sim.faults.transport import FaultyTransport
    from everynode.sim.world import World

ACTIONS: Final[dict[str, Act]] = {
    **users.ACTIONS,
    **intruders.ACTIONS,
    **nodes.ACTIONS,
    **pods.ACTIONS,
    **hooks.ACTIONS,
    **processes.ACTIONS,
    **servers.ACTIONS,
}
# Transport faults that last for a while; `ActiveFaults` implements them.
_LASTING_FAULTS: Final = (
    "hold-watch",
    "silence",
    "no-bookmarks",
    "stutter",
    "outage",
    "cut-off",
    "refuse-watch",
    "lose-requests",
    "lose-answers",
    "deny-pods",
    "deny-adoption",
    "refuse-image",
    "quota",
    "namespace-ending",
    "mutate-pods",
    "slow-admission",
    "expiring-pages",
)
ACTION_NAMES: Final = (*ACTIONS, *_LASTING_FAULTS)


class ActionRunner:
    """Performs actions on a world."""

    def __init__(self, world: World, transport: FaultyTransport) -> None:
        self._world = world
        self._ctx = ActionContext(world, Client(transport, world.clock))

    async def run(self, action: Action) -> None:
        """Perform an action; a request that the server refuses changes nothing."""
        self._world.faults.count_action(action)
        if action.name in _LASTING_FAULTS:
            self._begin_fault(action)
            return
        with suppress(KubeError):
            await ACTIONS[action.name](self._ctx, action)

    def _begin_fault(self, action: Action) -> None:
        """Begin a fault that lasts; some of them break the open watches first."""
        self._world.faults.begin(action)
        for transport in self._world.transports():
            if action.name in ("outage", "cut-off"):
                if transport.name.startswith(str(action.args.get("who", ""))):
                    transport.end_watches("", half=True)
            elif action.name == "expiring-pages":
                transport.end_watches("", gone=True)

    async def heal(self) -> None:
        """Undo what lasts: what was written on nodes, foreign and stuck pods, clocks, watches."""
        ctx = self._ctx
        ctx.hooks_unanswered_until = 0.0
        with suppress(KubeError):
            await ctx.set_images("")
        for process in self._world.processes.values():
            process.clock.set_right()
            process.transport.end_silent_watches()
        for name, node in sorted(self._world.record.cluster.nodes.items()):
            if name in ctx.annotated_nodes:
                none = dict.fromkeys(nodes.BEHAVIOUR_ANNOTATIONS)
                await ctx.tolerate_error(ctx.annotate_node(name, none))
            for each in node.status.conditions:
                if each.type in NODE_LIFECYCLE and each.status == "True":
                    undone = nodes.write_lifecycle(ctx, name, each.type, "False")
                    await ctx.tolerate_error(undone)
            if node.spec.unschedulable or any(each.key == TAINT for each in node.spec.taints):
                await ctx.tolerate_error(ctx.set_taints(name, []))
        for pod in ctx.pods():
            if nodes.FILLER in pod.metadata.labels:
                await nodes.empty_node(ctx, pod.metadata.labels[nodes.FILLER])
            if STUCK_FINALIZER in pod.metadata.finalizers:
                no_finalizers: Object = {"metadata": {"finalizers": None}}
                await ctx.tolerate_error(ctx.patch(PODS, pod.name, no_finalizers))

    async def answer_hooks(self) -> None:
        """Release pods that wait for their preDelete hook, as the hook's program normally does."""
        if any(each.pre_delete for each in self._world.record.cluster.sets.values()):
            await hooks.release_hooks(self._ctx, Action("release-hooks"))

    async def create(self, manifest: Object) -> None:
        """Create a DaemonSet."""
        await self._ctx.create_daemonset(manifest)
