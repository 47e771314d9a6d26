"""Virtual cluster: an embedded cluster with its controller on virtual time, to be read and changed.

It stands for the cluster of a user: a plan reads it, and then the change is really made in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from everynode.api.objects import Pod
from everynode.api.versions import decode_daemonset, flavour_of
from everynode.apiserver.storage.store import Change
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.decide.node.availability import is_ready
from everynode.forecast.played_rollout import KINDS, play
from everynode.inspect.stored_objects import StoredObjects, read_stored_objects
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import NODES
from everynode.kube.watch.decode import Decoder
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.plan import Timing

T = TypeVar("T")
Object = dict[str, Any]
_decode_pod = Decoder(Pod).one


class VirtualCluster:
    """Nodes, a controller, and a record of what happened to pods."""

    def __init__(self, loop: SimLoop, *, nodes: int, timing: Timing) -> None:
        self.clock = SimClock(loop, "virtual-cluster")
        self._api = Api(clock=self.clock)
        transport = LocalTransport(self._api)
        self.client = Client(transport, self.clock)
        options = ComponentOptions(nodes=nodes, behaviour=timing.behaviour())
        self._components = Components(transport, self.clock, options)
        self._controller = Controller(transport, self.clock, ControllerOptions(native=True))
        self._loop = loop
        # Nodes by the time at which their pod was first taken since `watch_order`, in that order.
        self.taken: dict[str, float] = {}
        self.last_ready = 0.0
        self._ready: set[str] = set()
        self._api.store.observe("pods", self._pod_changed)

    async def run(self, scenario: Callable[[VirtualCluster], Awaitable[T]]) -> T:
        tasks = [
            self._loop.create_task(work()) for work in (self._components.run, self._controller.run)
        ]
        await self._components.ready()
        found = await scenario(self)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found

    def _pod_changed(self, change: Change) -> None:
        pod, now = _decode_pod(change.record.body), self.clock.monotonic()
        before = _decode_pod(change.previous.body) if change.previous is not None else None
        if before is None or pod.terminating != before.terminating or pod.hash != before.hash:
            self.taken.setdefault(pod.node, now)
        if is_ready(pod) and pod.uid not in self._ready and change.type != "DELETED":
            self._ready.add(pod.uid)
            self.last_ready = now
        if not is_ready(pod):
            self._ready.discard(pod.uid)

    # --- What a user does ------------------------------------------------------------------

    async def create(self, manifest: Object) -> None:
        kind = KINDS[manifest["apiVersion"]]
        await self.client.write(verbs.create(kind, manifest, namespace="default"), bytes)

    async def patch(self, manifest: Object, body: Object) -> None:
        kind, name = KINDS[manifest["apiVersion"]], manifest["metadata"]["name"]
        await self.client.write(verbs.patch(kind, name, body, namespace="default"), bytes)

    async def patch_node(self, name: str, body: Object) -> None:
        await self.client.write(verbs.patch(NODES, name, body), bytes)

    async def read(self, manifest: Object) -> bytes:
        kind, name = KINDS[manifest["apiVersion"]], manifest["metadata"]["name"]
        return await self.client.read(verbs.get(kind, name, namespace="default"), bytes)

    async def stored(self, manifest: Object) -> StoredObjects:
        """Read what a plan reads."""
        raw = await self.read(manifest)
        ds = decode_daemonset(raw, flavour=flavour_of(manifest["apiVersion"]))
        return await read_stored_objects(self.client, ds, raw, self.clock.now())

    async def until(self, condition: Callable[[Object], bool], manifest: Object) -> None:
        """Wait until the DaemonSet is like this."""
        for _ in range(20_000):
            if condition(msgspec.json.decode(await self.read(manifest), type=dict[str, Any])):
                return
            await self.clock.sleep(1.0)
        raise AssertionError("it does not become so")

    async def complete(self, manifest: Object) -> None:
        await self.until(is_complete, manifest)


def is_complete(ds: Object) -> bool:
    status = ds.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    seen = status.get("observedGeneration") == ds["metadata"]["generation"]
    return seen and conditions.get("Complete") == "True"


def in_virtual_cluster(
    scenario: Callable[[VirtualCluster], Coroutine[Any, Any, T]],
    *,
    nodes: int,
    timing: Timing,
) -> T:
    """Play a scenario to its end and return what it returns."""
    return play(7, lambda loop: VirtualCluster(loop, nodes=nodes, timing=timing).run(scenario))
