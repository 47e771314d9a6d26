"""Stage: runs the same scenarios on the embedded cluster or on a real Kubernetes.

A scenario writes as a user would, and waits for what it expects to see. It has its own watches, so
nothing is polled and no state is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import Condition, ControllerRevision, Node, Pod
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock, SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.decide.node.availability import is_ready
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.requests import MERGE_PATCH, STRATEGIC_PATCH
from everynode.kube.resources import (
    ADVANCED,
    ADVANCED_V1ALPHA1,
    DAEMONSETS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    REVISIONS,
    Resource,
)
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache, parse_resource_version
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher
from tests.support.stored_versions import cached_versions, shows, stored_versions
from tests.support.transports import Permitted

PATIENCE: Final = 90.0  # seconds; most waits take one, but the machine may be busy
_HEARTBEAT: Final = 0.05  # seconds between two checks of conditions that no watch reports
# Thirty times real speed: a pod stops in 0.03 s and starts in 0.1 s.
QUICK: Final = Behaviour(speed=30.0)
_KINDS: Final = {
    "apps/v1": DAEMONSETS,
    "apps.kruise.io/v1beta1": ADVANCED,
    "apps.kruise.io/v1alpha1": ADVANCED_V1ALPHA1,
}

Object = dict[str, Any]


def kind_of(manifest: Object) -> Resource:
    return _KINDS[manifest["apiVersion"]]


@dataclass
class Seen:
    """What was observed so far, by watching every change of a pod."""

    most_down: int = 0
    most_together: int = 0
    most_doubled: int = 0
    # Nodes in the order in which their pods were disrupted.
    moved: list[str] = field(default_factory=list)


class Stage:
    """The cluster of one scenario: its namespace, nodes and controller."""

    def __init__(self, transport: Transport, clock: Clock, *, namespace: str, real: bool) -> None:
        self.transport = transport
        self.clock = clock
        self.namespace = namespace
        self.real = real
        self.client = Client(transport, clock)
        self.pods: Cache[Pod] = Cache()
        self.nodes: Cache[Node] = Cache()
        self.revisions: Cache[ControllerRevision] = Cache()
        self.sets: Cache[DaemonSet] = Cache()
        self.natives: Cache[DaemonSet] = Cache()
        self.controller: Controller | None = None
        self.permitted = Permitted(transport)
        # Serves the cluster over HTTPS; returns the path of a kubeconfig, made in the folder.
        self.serve: Callable[[Path], Awaitable[str]] | None = None
        self._written: dict[str, int] = {}  # resource versions by uid
        self._changed = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._running: asyncio.Task[None] | None = None
        for cache in (self.pods, self.nodes, self.revisions, self.sets, self.natives):
            cache.subscribe(lambda *_: self._changed.set())

    # --- Start and stop --------------------------------------------------------------------

    @asynccontextmanager
    async def playing(
        self, *, nodes: int, behaviour: Behaviour = QUICK, simulated: bool = True
    ) -> AsyncIterator[Stage]:
        """Run the watches, the simulated nodes (unless there are real ones) and the controller."""
        options = ComponentOptions(nodes=nodes, behaviour=behaviour, controllers=not self.real)
        components = Components(self.transport, self.clock, options)
        async with asyncio.TaskGroup() as self._tasks:
            background = [
                self._tasks.create_task(work) for work in (w.run() for w in self._watchers())
            ]
            await self._make_namespace()
            if simulated:
                background.append(self._tasks.create_task(components.run()))
                await components.ready()
            await self.until(
                lambda: len(self.nodes) >= nodes and not any(map(_tainted, self.all_nodes())),
                "all nodes are ready",
            )
            self.start_controller()
            yield self
            await self.stop_controller()
            assert not self.permitted.refused, "the role of the controller lacks something"
            for task in background:
                task.cancel()

    def start_controller(
        self, options: ControllerOptions | None = None, *, transport: Transport | None = None
    ) -> None:
        assert self._tasks is not None
        options = options or ControllerOptions(
            native=True, namespace=self.namespace, forgiving=False
        )
        self.controller = Controller(transport or self.permitted, self.clock, options)
        self._running = self._tasks.create_task(self.controller.run())

    async def stop_controller(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            self._running = None

    async def _make_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.write(verbs.create(NAMESPACES, body), bytes)

    def _watchers(self) -> list[Any]:
        options = ListOptions(namespace=self.namespace)
        watch = partial(Watcher, self.transport, self.clock)
        advanced = partial(decode_daemonset, flavour=Flavour.ADVANCED)
        native = partial(decode_daemonset, flavour=Flavour.NATIVE)
        return [
            watch(resource=NODES, decode=Decoder(Node).one, consumer=self.nodes),
            watch(resource=PODS, decode=Decoder(Pod).one, consumer=self.pods, options=options),
            watch(
                resource=REVISIONS,
                decode=Decoder(ControllerRevision).one,
                consumer=self.revisions,
                options=options,
            ),
            watch(resource=ADVANCED, decode=advanced, consumer=self.sets, options=options),
            watch(resource=DAEMONSETS, decode=native, consumer=self.natives, options=options),
        ]

    # --- Doing -----------------------------------------------------------------------------

    async def create(self, manifest: Object) -> Object:
        return await self.make(kind_of(manifest), manifest)

    async def make(self, resource: Resource, body: Object) -> Object:
        namespace = self.namespace if resource.namespaced else ""
        request = verbs.create(resource, body, namespace=namespace)
        return self._remember(await self.client.write(request, _json))

    async def change(self, manifest: Object, **spec: Any) -> None:
        """Merge fields into the spec."""
        await self.patch(kind_of(manifest), manifest["metadata"]["name"], {"spec": spec})

    async def change_template(
        self, manifest: Object, *, metadata: Object | None = None, **spec: Any
    ) -> None:
        """Merge fields into the template; lists are replaced."""
        template = {"metadata": metadata or {}, "spec": spec}
        await self.change(manifest, template=template)

    async def start(self, manifest: Object, nodes: int) -> None:
        """Create a DaemonSet and wait until it runs on all nodes."""
        await self.create(manifest)
        image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
        await self.until_running(image, nodes)
        await self.until_complete(manifest)

    async def delete_pod(self, pod: Pod) -> None:
        await self.delete(PODS, pod.name)

    async def add_node(self, name: str, **labels: str) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await self.make(NODES, body)

    async def lose_node(self, name: str) -> None:
        """Stop a node's kubelet and wait until the control plane has noticed."""
        await self.annotate_node(name, {"sim.everynode.io/stopped": "true"})
        await self.set_node_ready(name, "Unknown")

    async def find_node(self, name: str) -> None:
        """Start the node's kubelet again."""
        await self.annotate_node(name, {"sim.everynode.io/stopped": None})

    async def set_node_ready(self, name: str, status: str) -> None:
        body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        request = verbs.patch(NODES, name, body, kind=STRATEGIC_PATCH, subresource="status")
        await self.client.write(request, bytes)

    async def patch(
        self, resource: Resource, name: str, body: Object, *, strategic: bool = False
    ) -> Object:
        namespace = self.namespace if resource.namespaced else ""
        kind = STRATEGIC_PATCH if strategic else MERGE_PATCH
        answer = await self.client.write(
            verbs.patch(resource, name, body, kind=kind, namespace=namespace), _json
        )
        return self._remember(answer)

    def _remember(self, answer: Object) -> Object:
        """Remember the version of our last write, so that `observed` compares with it."""
        meta = answer["metadata"]
        self._written[meta["uid"]] = parse_resource_version(meta["resourceVersion"])
        return answer

    async def set_image(self, manifest: Object, image: str) -> None:
        """Change the image of the first container, as `kubectl set image` does."""
        resource = kind_of(manifest)
        name = manifest["metadata"]["name"]
        live = await self.get(resource, name)
        containers = live["spec"]["template"]["spec"]["containers"]
        containers[0]["image"] = image
        await self.patch(
            resource, name, {"spec": {"template": {"spec": {"containers": containers}}}}
        )

    async def set_rolling(self, manifest: Object, **rolling: Any) -> None:
        """Change the rolling update's settings."""
        spec = {"updateStrategy": {"rollingUpdate": rolling}}
        await self.patch(kind_of(manifest), manifest["metadata"]["name"], {"spec": spec})

    async def get(self, resource: Resource, name: str) -> Object:
        namespace = self.namespace if resource.namespaced else ""
        return await self.client.read(verbs.get(resource, name, namespace=namespace), _json)

    async def delete(self, resource: Resource, name: str, *, propagation: str = "") -> None:
        namespace = self.namespace if resource.namespaced else ""
        request = verbs.delete(resource, name, namespace=namespace, propagation=propagation)
        await self.client.write(request, bytes)

    async def label_node(self, name: str, **labels: str | None) -> None:
        await self.patch(NODES, name, {"metadata": {"labels": labels}})

    async def annotate_node(self, name: str, annotations: dict[str, str | None]) -> None:
        await self.patch(NODES, name, {"metadata": {"annotations": annotations}})

    async def taint_node(self, name: str, *taints: Object) -> None:
        await self.patch(NODES, name, {"spec": {"taints": list(taints)}})

    # --- Seeing ----------------------------------------------------------------------------

    def all_nodes(self) -> list[Node]:
        return [node for _, node in sorted(self.nodes.all().items())]

    def all_pods(self) -> list[Pod]:
        return [pod for _, pod in sorted(self.pods.all().items())]

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.all_pods() if pod.node == node]

    def pod_on(self, node: str) -> Pod:
        """The only pod of a node that is neither terminating nor finished."""
        [pod] = [pod for pod in self.on(node) if not pod.terminating and not pod.finished]
        return pod

    async def raw(self, pod: Pod) -> Object:
        """The whole pod object, read from the server now."""
        return await self.get(PODS, pod.name)

    async def raw_pods(self) -> list[Object]:
        options = ListOptions(namespace=self.namespace)
        return await self.client.read_all(PODS, _json, options=options)

    async def events(self, reason: str) -> list[Object]:
        """The events of a reason."""
        options = ListOptions(namespace=self.namespace)
        found = await self.client.read_all(EVENTS, _json, options=options)
        return [event for event in found if event["reason"] == reason]

    async def until_event(self, reason: str) -> Object:
        """Wait for the first event of a reason: events are written in the background."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := await self.events(reason)):
                    await self._until_something_changes()
        except TimeoutError:
            raise AssertionError(f"never seen: an event {reason}\n{self.describe()}") from None
        return found[0]

    def history(self) -> list[ControllerRevision]:
        """The revisions, oldest first."""
        return sorted(self.revisions.all().values(), key=lambda revision: revision.revision)

    def images(self) -> dict[str, str]:
        """The image of each node's Ready pod; nodes without one are left out."""
        return {
            pod.node: pod.spec.containers[0].image
            for pod in self.all_pods()
            if is_ready(pod) and not pod.terminating
        }

    def running(self, image: str) -> list[str]:
        """The names of nodes where a Ready pod runs the image."""
        pods = [pod for pod in self.all_pods() if pod.spec.containers[0].image == image]
        return sorted({pod.node for pod in pods if _up(pod)})

    def status(self, manifest: Object) -> DaemonSetStatus:
        """The status; empty before the first write."""
        found = self._found(manifest)
        return found.status if found is not None else DaemonSetStatus()

    def condition(self, manifest: Object, kind: str) -> Condition | None:
        return next((c for c in self.status(manifest).conditions if c.type == kind), None)

    def _found(self, manifest: Object) -> DaemonSet | None:
        cache = self.natives if manifest["apiVersion"] == "apps/v1" else self.sets
        return cache.get(f"{self.namespace}/{manifest['metadata']['name']}")

    async def until(
        self, reached: Callable[[], Any], what: str, *, patience: float = PATIENCE
    ) -> None:
        """Wait until a condition holds; fail with a description of it when the time is up."""
        try:
            async with asyncio.timeout(patience):
                while not reached():
                    await self._until_something_changes()
        except TimeoutError:
            raise AssertionError(f"never seen: {what}\n{self.describe()}") from None

    async def until_running(self, image: str, count: int) -> None:
        await self.until(
            lambda: len(self.running(image)) == count, f"{count} nodes run {image}, ready"
        )

    async def until_complete(self, manifest: Object) -> None:
        """Wait until the status shows that the rollout of the newest generation is complete."""

        def complete() -> bool:
            condition = self.condition(manifest, "Complete")
            return condition is not None and condition.status == "True" and self.observed(manifest)

        await self.until(complete, "the condition Complete")
        await self._catch_up()

    def observed(self, manifest: Object) -> bool:
        """Whether the status shows that the controller has observed the current spec."""
        found = self._found(manifest)
        if found is None:
            return False
        version = parse_resource_version(found.metadata.resource_version)
        fresh = version >= self._written.get(found.uid, 0)
        return fresh and found.status.observed_generation == found.metadata.generation

    async def settled(self, manifest: Object) -> None:
        """Wait until the controller has seen every object and has nothing to do."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._at_rest(manifest, await self._versions()):
                    await self._until_something_changes()
        except TimeoutError:
            text = f"the controller never comes to rest\n{self.describe()}"
            raise AssertionError(text) from None

    def _at_rest(self, manifest: Object, there: dict[str, int]) -> bool:
        controller = self.controller
        assert controller is not None
        informers = controller.informers
        caches: tuple[Cache[Any], ...] = (
            informers.nodes,
            informers.pods,
            *informers.daemonsets.values(),
        )
        own: tuple[Cache[Any], ...] = (self.nodes, self.pods, self.sets, self.natives)
        seen = shows(caches, there) and shows(own, there)
        busy = any(
            state.writes or state.verifying or state.observing
            for state in informers.states.values()
        )
        return seen and not busy and not controller._queue and self.observed(manifest)

    async def _versions(self) -> dict[str, int]:
        """The resource versions of all objects that the controller reads, by uid."""
        options = ListOptions(namespace=self.namespace)
        pods = ListOptions(namespace=self.namespace, labels=REVISION_HASH)
        return await stored_versions(
            self.client, {NODES: None, PODS: pods, ADVANCED: options, DAEMONSETS: options}
        )

    async def _catch_up(self) -> None:
        """Wait until our own watches show what is stored: one may lag behind another."""
        caches: dict[Resource, Cache[Any]] = {PODS: self.pods, REVISIONS: self.revisions}
        options = dict.fromkeys(caches, ListOptions(namespace=self.namespace))
        while True:
            before = cached_versions(caches.values())
            there = await stored_versions(self.client, options)
            if shows(caches.values(), there) and before.keys() <= there.keys():
                return
            await self._until_something_changes()

    async def _until_something_changes(self) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), _HEARTBEAT)

    def observe(self, nodes: int) -> Seen:
        """Check every change of a pod from now on."""
        seen = Seen()

        def check_change(before: Pod | None, after: Pod | None) -> None:
            places: dict[str, list[Pod]] = {}
            for pod in self.pods.all().values():
                places.setdefault(pod.node, []).append(pod)
            up = [n for n, pods in places.items() if any(map(_up, pods))]
            seen.most_down = max(seen.most_down, nodes - len(up))
            sizes = [len([p for p in pods if not p.finished]) for pods in places.values()]
            seen.most_together = max([seen.most_together, *sizes])
            seen.most_doubled = max(seen.most_doubled, sum(size > 1 for size in sizes))
            if before and after and after.terminating and not before.terminating:
                seen.moved.append(after.node)

        self.pods.subscribe(check_change)
        return seen

    def describe(self) -> str:
        """A description of all objects, for the message of a failure."""
        lines = [
            f"  {pod.name} on {pod.node}: {pod.status.phase} {pod.hash}"
            f" ready={is_ready(pod)} terminating={pod.terminating}"
            for pod in self.all_pods()
        ]
        for cache in (self.sets, self.natives):
            for key, ds in cache.all().items():
                lines.append(f"  {key}: {ds.status}")
        return "\n".join(lines)


def _up(pod: Pod) -> bool:
    return is_ready(pod) and not pod.terminating


def _tainted(node: Node) -> bool:
    return any(taint.key == "node.kubernetes.io/not-ready" for taint in node.spec.taints)


_json: Final = msgspec.json.Decoder(Object).decode


def daemonset(
    name: str = "agent",
    *,
    api_version: str = "apps.kruise.io/v1beta1",
    image: str = "agent:v1",
    rolling: Object | None = None,
    template: Object | None = None,
    **spec: Any,
) -> Object:
    """A DaemonSet manifest as users write it."""
    pod_spec = {"containers": [{"name": "agent", "image": image}]}
    made: Object = {"metadata": {"labels": {"app": name}}, "spec": pod_spec}
    for key, value in (template or {}).items():
        made[key] = {**made[key], **value}
    manifest: Object = {
        "apiVersion": api_version,
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": made, **spec},
    }
    if rolling is not None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        manifest["spec"]["updateStrategy"] = strategy
    return manifest


def clock() -> Clock:
    return SystemClock()
