"""ActionContext: the world, the API client and the helpers that actions share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import Pod
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import MERGE_PATCH
from everynode.kube.resources import (
    ADVANCED,
    ADVANCED_V1ALPHA1,
    DAEMONSETS,
    NODES,
    Resource,
)
from everynode.sim.history.record import NAMESPACE
from everynode.sim.plans.plan import Action, Object

if TYPE_CHECKING:
    from everynode.sim.engine.process import Process
    from everynode.sim.world import World

DAEMONSET_RESOURCES: Final = {
    "apps/v1": DAEMONSETS,
    "apps.kruise.io/v1beta1": ADVANCED,
    "apps.kruise.io/v1alpha1": ADVANCED_V1ALPHA1,
}
TAINT: Final = "sim.everynode.io/taint"  # the key of every taint that an action sets
# The finalizer that keeps a pod from being removed.
STUCK_FINALIZER: Final = "sim.everynode.io/stuck"
_CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ActionContext:
    """What an action can use: the world, a user's API client, and the state that actions share."""

    def __init__(self, world: World, client: Client) -> None:
        self.world = world
        self.client = client
        self.annotated_nodes: set[str] = set()  # annotated so that the simulated kubelet misbehaves
        self.hooks_unanswered_until = 0.0

    # --- Which object an action means -------------------------------------------------------------

    def pods(self) -> list[Pod]:
        """All pods, sorted by name."""
        return sorted(self.world.record.cluster.pods.values(), key=lambda pod: pod.name)

    def pick_pod(self, action: Action) -> Pod | None:
        """The daemon pod on the action's node; if there are several, the one at index `which`."""
        node = self.node_name(action)
        found = [pod for pod in self.pods() if pod.node == node and pod.metadata.controller]
        return found[action.args.get("which", 0) % len(found)] if found else None

    def node_name(self, action: Action) -> str:
        """A node by name, or by its index among the existing ones."""
        node = action.args.get("node", 0)
        names = sorted(self.world.record.cluster.nodes)
        if isinstance(node, str):
            return node
        return names[node % len(names)] if names else "nowhere"

    def process(self, action: Action) -> Process:
        """The controller process that the action targets."""
        return self.world.processes[int(action.args.get("index", 0))]

    def find_daemonset(self, action: Action) -> DaemonSet | None:
        """The DaemonSet that the action names, if it exists."""
        name = set_name(action)
        sets = self.world.record.cluster.sets.values()
        return next((ds for ds in sets if ds.name == name), None)

    def resource(self, name: str) -> Resource:
        """The API resource of a DaemonSet: native or Advanced."""
        for ds in self.world.record.cluster.sets.values():
            if ds.name == name:
                return DAEMONSETS if ds.flavour is Flavour.NATIVE else ADVANCED
        return ADVANCED

    # --- Requests ---------------------------------------------------------------------------------

    async def create_daemonset(self, manifest: Object) -> None:
        """Create a DaemonSet from its manifest."""
        resource = DAEMONSET_RESOURCES[manifest["apiVersion"]]
        await self.client.write(verbs.create(resource, manifest, namespace=NAMESPACE), _json)

    async def get(self, resource: Resource, name: str) -> Object:
        """Read an object."""
        return await self.client.read(verbs.get(resource, name, namespace=NAMESPACE), _json)

    async def patch(self, resource: Resource, name: str, body: Object) -> None:
        """Send a merge patch."""
        request = verbs.patch(resource, name, body, kind=MERGE_PATCH, namespace=NAMESPACE)
        await self.client.write(request, bytes)

    async def patch_daemonset(self, name: str, body: Object) -> None:
        """Send a merge patch to a DaemonSet of either kind."""
        await self.patch(self.resource(name), name, body)

    async def change_template(self, name: str, change: Callable[[Object], None]) -> None:
        """Read a DaemonSet's template, change it and write all of it back."""
        live = await self.get(self.resource(name), name)
        template = live["spec"]["template"]
        change(template)
        await self.patch_daemonset(name, {"spec": {"template": template}})

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        """Delete an object."""
        request = verbs.delete(resource, name, namespace=NAMESPACE, **options)
        await self.client.write(request, bytes)

    async def tolerate_error(self, work: Awaitable[None]) -> None:
        """Ignore an error response of the server: the object may have been deleted by now."""
        with suppress(KubeError):
            await work

    async def annotate_node(self, name: str, annotations: dict[str, Any]) -> None:
        """Set a simulated kubelet's behaviour by node annotations; None removes an annotation."""
        self.annotated_nodes.add(name)
        body = {"metadata": {"annotations": annotations}, "spec": {}}
        await self.client.write(verbs.patch(NODES, name, body), bytes)

    async def set_taints(self, name: str, taints: list[dict[str, str]]) -> None:
        """Replace the taints that actions have set on a node, and uncordon it."""
        node = self.world.record.cluster.nodes.get(name)
        if node is None:
            return
        kept = [msgspec.to_builtins(each) for each in node.spec.taints if each.key != TAINT]
        body: Object = {"spec": {"taints": [*kept, *taints], "unschedulable": None}}
        body["metadata"] = {"resourceVersion": node.metadata.resource_version}
        await self.client.write(verbs.patch(NODES, name, body), bytes)

    async def set_images(self, text: str) -> None:
        """Write the ConfigMap that defines how images behave on simulated nodes."""
        meta = {"name": "everynode-images", "namespace": "kube-system"}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"images": text},
        }
        try:
            request = verbs.create(_CONFIGMAPS, body, namespace="kube-system")
            await self.client.write(request, bytes)
        except KubeError:
            patch = {"data": {"images": text}}
            request = verbs.patch(_CONFIGMAPS, "everynode-images", patch, namespace="kube-system")
            await self.client.write(request, bytes)


Act = Callable[[ActionContext, Action], Awaitable[None]]


def set_name(action: Action) -> str:
    """The name of the DaemonSet that the action targets."""
    return str(action.args.get("name", "agent"))
