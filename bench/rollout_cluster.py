"""Cluster in which a rollout is measured: an API server, simulated nodes, watched pods."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.pod_timing import PodTiming
from everynode.api.crd import crd
from everynode.api.objects import Node, Pod
from everynode.clock import SystemClock
from everynode.kube import verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.errors import NotFound
from everynode.kube.http.transport import HttpTransport
from everynode.kube.resources import CRDS, NAMESPACES, NODES, PODS, REVISIONS, Resource
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.processes import ChildProcess, stop

Object = dict[str, Any]

NAMESPACE = "bench"
GRACE = 5.0
clock = SystemClock()
decode_object = msgspec.json.Decoder(Object).decode


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, and how long its pods take to start and to stop."""

    nodes: int
    start: float
    stop: float


@dataclass(slots=True)
class RolloutCluster:
    """A cluster that is ready for a contender."""

    size: Size
    folder: Path
    kubeconfig: Path
    client: Client
    plane: ControlPlane | None  # None where the server is the embedded one
    nodes: Cache[Node] = field(default_factory=lambda: Cache(quiet=True))
    pods: Cache[Pod] = field(default_factory=Cache)
    pace: PodTiming = field(default_factory=PodTiming)

    async def watch(self) -> None:
        """Follow nodes and pods until cancelled."""
        transport = self.client.transport
        nodes = Watcher(
            transport, clock, resource=NODES, decode=Decoder(Node).one, consumer=self.nodes
        )
        pods = Watcher(
            transport,
            clock,
            resource=PODS,
            decode=Decoder(Pod).one,
            consumer=self.pods,
            options=ListOptions(namespace=NAMESPACE),
        )
        self.pods.subscribe(self.pace.pod_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(nodes.run())
            group.create_task(pods.run())

    async def until_nodes_are_ready(self) -> None:
        def ready() -> bool:
            fit = [n for n in self.nodes.all().values() if n.ready == "True" and not n.spec.taints]
            return len(fit) == self.size.nodes

        while not ready():
            await clock.sleep(0.5)

    async def create(self, resource: Resource, body: Object) -> None:
        namespace = NAMESPACE if resource.namespaced else ""
        await self.client.write(verbs.create(resource, body, namespace=namespace), bytes)

    async def patch(self, resource: Resource, name: str, body: Object) -> None:
        await self.client.write(verbs.patch(resource, name, body, namespace=NAMESPACE), bytes)

    async def get(self, resource: Resource, name: str) -> Object:
        return await self.client.read(verbs.get(resource, name, namespace=NAMESPACE), decode_object)

    async def clear(self, resource: Resource, name: str) -> None:
        """Remove a DaemonSet and all that came of it, without any controller's help."""
        await self._remove(resource, name)
        for kind in (REVISIONS, PODS):
            found = await self.client.read_all(
                kind, decode_object, options=ListOptions(namespace=NAMESPACE)
            )
            names = [each["metadata"]["name"] for each in found]
            await asyncio.gather(*(self._remove(kind, each) for each in names))
        while len(self.pods):
            await clock.sleep(0.2)

    async def _remove(self, resource: Resource, name: str) -> None:
        request = verbs.delete(resource, name, namespace=NAMESPACE, grace_seconds=0)
        with suppress(NotFound):
            await self.client.write(request, bytes)


@asynccontextmanager
async def real(size: Size) -> AsyncIterator[RolloutCluster]:
    """The real API server, etcd and scheduler; our nodes."""
    async with ControlPlane(ControlPlaneOptions(controllers=None)) as plane:
        players = _players(size, plane.folder, "--kubeconfig", plane.kubeconfig)
        players.start()
        try:
            async with _watched(size, plane.folder, plane.kubeconfig, plane) as place:
                yield place
        finally:
            await stop([players], GRACE)


@asynccontextmanager
async def embedded(size: Size) -> AsyncIterator[RolloutCluster]:
    """Our own server over HTTPS, and our nodes, in one process."""
    with tempfile.TemporaryDirectory(prefix="everynode-bench-") as name:
        folder = Path(name)
        kubeconfig = folder / "kubeconfig"
        players = _players(size, folder, "--embedded", kubeconfig)
        players.start()
        try:
            while not kubeconfig.exists():
                players.require_running()
                await clock.sleep(0.1)
            async with _watched(size, folder, kubeconfig, None) as place:
                yield place
        finally:
            await stop([players], GRACE)


@asynccontextmanager
async def _watched(
    size: Size, folder: Path, kubeconfig: Path, plane: ControlPlane | None
) -> AsyncIterator[RolloutCluster]:
    transport = HttpTransport(load_cluster_config(clock, kubeconfig=str(kubeconfig)), clock)
    place = RolloutCluster(
        size, folder, kubeconfig, Client(transport, clock, writes_at_once=64), plane
    )
    try:
        await place.create(
            NAMESPACES,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        )
        if plane is not None:  # the embedded server has it built in
            await place.create(CRDS, crd())
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(place.watch())
            await place.until_nodes_are_ready()
            yield place
            watching.cancel()
    finally:
        await transport.close()


def _players(size: Size, folder: Path, how: str, kubeconfig: Path) -> ChildProcess:
    argv = [sys.executable, "-m", "bench.nodes", how, str(kubeconfig)]
    argv += [f"--nodes={size.nodes}", f"--start={size.start}", f"--stop={size.stop}"]
    # Found as a module from where we ourselves were started.
    return ChildProcess(argv, Path.cwd(), folder / "nodes.log")
