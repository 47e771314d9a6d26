"""What people, nodes and other programs do in a simulated world: one method each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from everynode.api.times import format_time
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import (
    ADVANCED,
    ADVANCED_V1ALPHA1,
    DAEMONSETS,
    NODES,
    PODS,
    REVISIONS,
    Resource,
)
from everynode.sim.holdups import NAMESPACE, STUCK, Holdups
from everynode.sim.plan import Happening, Object
from everynode.sim.upheavals import Upheavals

if TYPE_CHECKING:
    from everynode.sim.door import Door
    from everynode.sim.world import World

_STOPPED: Final = "sim.everynode.io/stopped"
_SLOW: Final = "sim.everynode.io/slow"
_NOT_READY: Final = "sim.everynode.io/not-ready"
_PRESSURE: Final = "sim.everynode.io/pressure"
_OURS: Final = "sim.everynode.io/taint"
KINDS: Final = {
    "apps/v1": DAEMONSETS,
    "apps.kruise.io/v1beta1": ADVANCED,
    "apps.kruise.io/v1alpha1": ADVANCED_V1ALPHA1,
}
_CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode

# Windows in which something goes wrong on the way; the sky knows what they do.
_WINDOWS: Final = (
    "hold-watch",
    "silence",
    "no-bookmarks",
    "stutter",
    "outage",
    "cut-off",
    "refuse-watch",
    "deny-pods",
    "quota",
    "namespace-ending",
    "mutate-pods",
    "slow-admission",
    "expiring-pages",
)


class Actions(Upheavals, Holdups):
    """Everything that can be done to a world, by name."""

    def __init__(self, world: World, door: Door) -> None:
        self._world = world
        self._client = Client(door, world.clock)
        self._disturbed: set[str] = set()  # nodes that were told to behave badly
        self._by_name: dict[str, Callable[[Happening], Awaitable[None]]] = {
            name.removeprefix("_do_").replace("_", "-"): getattr(self, name)
            for name in sorted(dir(self))
            if name.startswith("_do_")
        }

    async def do(self, happening: Happening) -> None:
        """Let something happen; what the server refuses has not happened."""
        self._world.sky.strike(happening)
        if happening.what in _WINDOWS:
            self._world.sky.begin(happening)
            if happening.what in ("outage", "cut-off"):
                for door in self._world.doors():
                    if door.name.startswith(str(happening.args.get("who", ""))):
                        door.cut("", half=True)
            if happening.what == "expiring-pages":
                for door in self._world.doors():
                    door.cut("", gone=True)
            return
        with suppress(KubeError):
            await self._by_name[happening.what](happening)

    async def heal(self) -> None:
        """Put right what nobody else would: nodes, kubelets, stuck pods, deaf programs."""
        self._deaf_until = 0.0
        with suppress(KubeError):
            await self._set_images("")
        for process in self._world.processes.values():
            process.clock.set_right()
            process.door.revive()
        for name, node in sorted(self._world.record.scene.nodes.items()):
            if name in self._disturbed:
                words = dict.fromkeys((_STOPPED, _SLOW, _NOT_READY, _PRESSURE))
                await self._try(self._annotate(name, words))
            if node.spec.unschedulable or any(each.key == _OURS for each in node.spec.taints):
                await self._try(self._set_taints(name, []))
        for pod in self._pods():
            if STUCK in pod.metadata.finalizers:
                await self._try(self._patch(PODS, pod.name, {"metadata": {"finalizers": None}}))

    async def tend(self) -> None:
        """Do what other programs do all the time: here, let pods go that wait for their hook."""
        if any(each.pre_delete for each in self._world.record.scene.sets.values()):
            await self._do_release_hooks(Happening("release-hooks"))

    async def create(self, manifest: Object) -> None:
        """Create a DaemonSet."""
        resource = KINDS[manifest["apiVersion"]]
        await self._client.write(verbs.create(resource, manifest, namespace=NAMESPACE), _json)

    # --- People ----------------------------------------------------------------------------------

    async def _do_apply(self, happening: Happening) -> None:
        """Merge something into the spec of a DaemonSet: partition, pause, and the like."""
        await self._change(happening.args.get("name", "agent"), {"spec": happening.args["spec"]})

    async def _do_set_image(self, happening: Happening) -> None:
        name = happening.args.get("name", "agent")
        live = await self._get(self._resource(name), name)
        template = live["spec"]["template"]
        template["spec"]["containers"][0]["image"] = happening.args["image"]
        annotations = happening.args.get("annotations")
        if annotations is not None:
            template.setdefault("metadata", {})["annotations"] = annotations
        await self._change(name, {"spec": {"template": template}})

    async def _do_set_selector(self, happening: Happening) -> None:
        """Change which nodes the template wants."""
        name = happening.args.get("name", "agent")
        live = await self._get(self._resource(name), name)
        template = live["spec"]["template"]
        template["spec"]["nodeSelector"] = happening.args["labels"] or None
        await self._change(name, {"spec": {"template": template}})

    async def _do_respell(self, happening: Happening) -> None:
        """Write into the template what it means already."""
        defaults = {"dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
        spec = {"template": {"spec": defaults}}
        await self._change(happening.args.get("name", "agent"), {"spec": spec})

    async def _do_set_variable(self, happening: Happening) -> None:
        """Change what only a new pod can take over."""
        name = happening.args.get("name", "agent")
        live = await self._get(self._resource(name), name)
        template = live["spec"]["template"]
        variable = {"name": "LEVEL", "value": str(happening.args["value"])}
        template["spec"]["containers"][0]["env"] = [variable]
        await self._change(name, {"spec": {"template": template}})

    async def _do_recreate_set(self, happening: Happening) -> None:
        """Delete a DaemonSet, perhaps without its pods, and create it again."""
        name = happening.args.get("name", "agent")
        live = await self._get(self._resource(name), name)
        propagation = happening.args.get("propagation", "Background")
        await self._delete(self._resource(name), name, propagation=propagation)
        await self._world.clock.sleep(happening.seconds)
        meta = {"name": name, "labels": live["metadata"].get("labels", {})}
        fresh = {**live, "metadata": meta}
        fresh.pop("status", None)
        for _ in range(30):
            try:
                await self.create(fresh)
                return
            except KubeError:  # the old one is not gone yet
                await self._world.clock.sleep(1.0)

    async def _do_delete_pod(self, happening: Happening) -> None:
        pod = self._pick_pod(happening)
        if pod is not None:
            grace = happening.args.get("grace")
            await self._delete(PODS, pod.name, grace_seconds=grace)

    async def _do_relabel_pod(self, happening: Happening) -> None:
        """Take a pod out of the selector by hand."""
        pod = self._pick_pod(happening)
        if pod is not None:
            await self._patch(PODS, pod.name, {"metadata": {"labels": {"app": "taken-out"}}})
            if happening.args.get("keep"):
                return
            await self._world.clock.sleep(happening.seconds)
            await self._delete(PODS, pod.name)

    async def _do_orphan_pod(self, happening: Happening) -> None:
        """Take the owner away from a pod."""
        pod = self._pick_pod(happening)
        if pod is not None:
            body: Object = {"metadata": {"ownerReferences": None}}
            if happening.args.get("strip"):
                body["metadata"]["labels"] = {"controller-revision-hash": None}
            await self._patch(PODS, pod.name, body)

    async def _do_strip_hash(self, happening: Happening) -> None:
        """Take away the label by which pods are watched."""
        pod = self._pick_pod(happening)
        if pod is not None:
            body = {"metadata": {"labels": {"controller-revision-hash": None}}}
            await self._patch(PODS, pod.name, body)

    async def _do_delete_revision(self, happening: Happening) -> None:
        names = sorted(self._world.record.scene.revisions)
        if names:
            await self._delete(REVISIONS, names[happening.args.get("index", 0) % len(names)])

    async def _do_edit_revision(self, happening: Happening) -> None:
        names = sorted(self._world.record.scene.revisions)
        if names:
            name = names[happening.args.get("index", 0) % len(names)]
            await self._patch(REVISIONS, name, {"revision": happening.args.get("number", 99)})

    async def _do_write_status(self, happening: Happening) -> None:
        """Another controller believes that the DaemonSet is its own."""
        name = happening.args.get("name", "agent")
        said = happening.args.get("status", {"numberReady": happening.args.get("number", 0)})
        body: Object = {"status": {**said}}
        if happening.args.get("condition"):
            live = await self._get(self._resource(name), name)
            other = {"type": happening.args["condition"], "status": "True"}
            body["status"]["conditions"] = [*live.get("status", {}).get("conditions", ()), other]
        request = verbs.patch(
            self._resource(name), name, body, namespace=NAMESPACE, subresource="status"
        )
        await self._client.write(request, bytes)

    async def _do_touch_as_alpha(self, happening: Happening) -> None:
        """Write the DaemonSet in its older version."""
        name = happening.args.get("name", "agent")
        body = {"metadata": {"annotations": {"touched": str(happening.at)}}}
        await self._patch(ADVANCED_V1ALPHA1, name, body)

    # --- Nodes -----------------------------------------------------------------------------------

    async def _do_add_node(self, happening: Happening) -> None:
        name = happening.args["node"]
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": happening.args.get("labels", {})},
        }
        await self._client.write(verbs.create(NODES, body), bytes)

    async def _do_remove_node(self, happening: Happening) -> None:
        name = self._node(happening)
        await self._client.write(verbs.delete(NODES, name), bytes)

    async def _do_replace_node(self, happening: Happening) -> None:
        """A node goes and comes back under the same name, as another."""
        name = self._node(happening)
        node = self._world.record.scene.nodes.get(name)
        labels = node.metadata.labels if node is not None else {}
        await self._client.write(verbs.delete(NODES, name), bytes)
        await self._world.clock.sleep(happening.seconds)
        await self._do_add_node(Happening("add-node", args={"node": name, "labels": labels}))

    async def _do_lose_node(self, happening: Happening) -> None:
        """A kubelet falls silent and comes back."""
        await self._for_a_while(happening, {_STOPPED: "true"})

    async def _do_lose_zone(self, happening: Happening) -> None:
        for name, node in sorted(self._world.record.scene.nodes.items()):
            zone = node.metadata.labels.get("topology.kubernetes.io/zone", "")
            if zone == happening.args.get("zone", "zone-a"):
                await self._try(self._annotate(name, {_STOPPED: "true"}))

    async def _do_find_nodes(self, happening: Happening) -> None:
        """All kubelets are back."""
        for name in sorted(self._world.record.scene.nodes):
            await self._try(self._annotate(name, {_STOPPED: None}))

    async def _do_unready_node(self, happening: Happening) -> None:
        await self._for_a_while(happening, {_NOT_READY: "true"})

    async def _do_slow_node(self, happening: Happening) -> None:
        await self._for_a_while(happening, {_SLOW: str(happening.args.get("factor", 10))})

    async def _do_press_node(self, happening: Happening) -> None:
        """A node runs out of memory and evicts its pods."""
        await self._for_a_while(happening, {_PRESSURE: "memory"})

    async def _do_label_node(self, happening: Happening) -> None:
        body = {"metadata": {"labels": happening.args["labels"]}}
        await self._client.write(verbs.patch(NODES, self._node(happening), body), bytes)

    async def _do_taint_node(self, happening: Happening) -> None:
        effect = happening.args.get("effect", "NoSchedule")
        await self._set_taints(self._node(happening), [{"key": _OURS, "effect": effect}])

    async def _do_untaint_node(self, happening: Happening) -> None:
        await self._set_taints(self._node(happening), [])

    async def _do_cordon_node(self, happening: Happening) -> None:
        body = {"spec": {"unschedulable": True}}
        await self._client.write(verbs.patch(NODES, self._node(happening), body), bytes)

    # --- Pods ------------------------------------------------------------------------------------

    async def _do_fail_pod(self, happening: Happening) -> None:
        """A pod ends for good."""
        pod = self._pick_pod(happening)
        if pod is not None:
            ended = {"exitCode": 137, "finishedAt": format_time(self._world.clock.now())}
            statuses = [
                {**msgspec.to_builtins(each), "ready": False, "state": {"terminated": ended}}
                for each in pod.status.container_statuses
            ]
            body = {"status": {"phase": "Failed", "containerStatuses": statuses}}
            request = verbs.patch(
                PODS,
                pod.name,
                body,
                kind=STRATEGIC_PATCH,
                namespace=NAMESPACE,
                subresource="status",
            )
            await self._client.write(request, bytes)

    async def _do_stick_pod(self, happening: Happening) -> None:
        """A finalizer keeps a pod from going."""
        pod = self._pick_pod(happening)
        if pod is not None:
            await self._patch(PODS, pod.name, {"metadata": {"finalizers": [STUCK]}})

    async def _do_quirk(self, happening: Happening) -> None:
        """Images behave differently from now on: `IMAGE WORDS` lines."""
        await self._set_images(str(happening.args.get("images", "")))

    # --- The way to the server and the processes -------------------------------------------------

    async def _do_crash(self, happening: Happening) -> None:
        self._process(happening).crash(happening.describe())

    async def _do_restart(self, happening: Happening) -> None:
        index = int(happening.args.get("index", 0))
        process = self._world.processes.get(index)
        if process is not None and not process.dead:
            await process.stop()
            self._world.start(index)

    async def _do_clock_jump(self, happening: Happening) -> None:
        self._process(happening).clock.jump(float(happening.args["by"]))

    async def _do_cut_watch(self, happening: Happening) -> None:
        for door in self._world.doors():
            door.cut(happening.args.get("kind", ""), half=bool(happening.args.get("half")))

    async def _do_gone(self, happening: Happening) -> None:
        """Versions are too old: everything has to be listed again."""
        self._world.api.store.history.forget(self._world.api.store.version)
        for door in self._world.doors():
            door.cut(happening.args.get("kind", ""), gone=True)

    # --- Inside ----------------------------------------------------------------------------------

    def _process(self, happening: Happening) -> Any:
        return self._world.processes[int(happening.args.get("index", 0))]

    async def _for_a_while(self, happening: Happening, words: dict[str, str]) -> None:
        name = self._node(happening)
        await self._annotate(name, words)
        if happening.seconds:
            again = self._again(happening.seconds, name, dict.fromkeys(words))
            self._world.loop.create_task(again)

    async def _again(self, seconds: float, name: str, words: dict[str, None]) -> None:
        await self._world.clock.sleep(seconds)
        await self._try(self._annotate(name, words))

    async def _annotate(self, name: str, words: dict[str, str] | dict[str, None]) -> None:
        self._disturbed.add(name)
        body = {"metadata": {"annotations": words}, "spec": {}}
        await self._client.write(verbs.patch(NODES, name, body), bytes)

    async def _set_taints(self, name: str, taints: list[dict[str, str]]) -> None:
        node = self._world.record.scene.nodes.get(name)
        if node is None:
            return
        kept = [msgspec.to_builtins(each) for each in node.spec.taints if each.key != _OURS]
        body: Object = {"spec": {"taints": [*kept, *taints], "unschedulable": None}}
        body["metadata"] = {"resourceVersion": node.metadata.resource_version}
        await self._client.write(verbs.patch(NODES, name, body), bytes)

    async def _set_images(self, text: str) -> None:
        meta = {"name": "everynode-images", "namespace": "kube-system"}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"images": text},
        }
        try:
            request = verbs.create(_CONFIGMAPS, body, namespace="kube-system")
            await self._client.write(request, bytes)
        except KubeError:
            patch = {"data": {"images": text}}
            request = verbs.patch(_CONFIGMAPS, "everynode-images", patch, namespace="kube-system")
            await self._client.write(request, bytes)

    async def _get(self, resource: Resource, name: str) -> Object:
        return await self._client.read(verbs.get(resource, name, namespace=NAMESPACE), _json)

    async def _change(self, name: str, body: Object) -> None:
        await self._patch(self._resource(name), name, body)

    async def _delete(self, resource: Resource, name: str, **options: Any) -> None:
        request = verbs.delete(resource, name, namespace=NAMESPACE, **options)
        await self._client.write(request, bytes)


# Everything that can be done.
NAMES: Final = (
    *(n.removeprefix("_do_").replace("_", "-") for n in dir(Actions) if n.startswith("_do_")),
    *_WINDOWS,
)
