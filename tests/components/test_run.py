"""The same kubelets, scheduler and controllers behind a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.objects import FullPod
from everynode.components.run import ComponentOptions, Components
from everynode.kube import verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.errors import from_response
from everynode.kube.http.transport import HttpTransport
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import DAEMONSETS, NAMESPACES, NODES, PODS
from everynode.kube.transport import Transport
from everynode.localkube.control_plane import ControlPlane
from everynode.localkube.control_plane import ControlPlaneOptions as PlaneOptions
from tests.support import kubernetes
from tests.support.components_cluster import Object, condition, pod_body

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
FAST = Behaviour(speed=10)


class RealCluster:
    """A real API server, with our components as its clients."""

    def __init__(self, transport: Transport, components: Components) -> None:
        self.transport = transport
        self.pods = components.informers.pods
        self.nodes = components.informers.nodes
        self._changed = asyncio.Event()
        self.pods.subscribe(lambda *_: self._changed.set())
        self.nodes.subscribe(lambda *_: self._changed.set())

    async def ask(self, request: Request) -> Object:
        response = await self.transport.send(request)
        if not response.ok:
            raise from_response(request, response)
        found: Object = json.loads(response.body)
        return found

    async def create(self, body: Object) -> Object:
        return await self.ask(verbs.create(PODS, body, namespace="default"))

    async def pod(self, name: str) -> Object:
        return await self.ask(verbs.get(PODS, name, namespace="default"))

    async def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait for a change until something holds."""
        async with asyncio.timeout(120):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def ready(self, name: str) -> bool:
        pod: FullPod | None = self.pods.get(f"default/{name}")
        found = pod.condition("Ready") if pod is not None else None
        return found is not None and found.status == "True"


@asynccontextmanager
async def real_cluster(
    plane: PlaneOptions, options: ComponentOptions
) -> AsyncIterator[RealCluster]:
    kubernetes.programs()
    clock = SystemClock()
    async with ControlPlane(plane) as running:
        transport = HttpTransport(
            load_cluster_config(clock, kubeconfig=str(running.kubeconfig)), clock
        )
        components = Components(transport, clock, options)
        cluster = RealCluster(transport, components)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(components.run())
                await components.ready()
                yield cluster
                task.cancel()
        finally:
            await transport.close()


async def test_our_kubelets_serve_a_real_control_plane() -> None:
    options = ComponentOptions(
        nodes=5, behaviour=FAST, controllers=False, node_controllers=False, heartbeat=5.0
    )
    async with real_cluster(PlaneOptions(), options) as cluster:
        gates = [{"conditionType": "example.io/warm"}]
        await cluster.create(pod_body("plain", node="node-0002"))
        await cluster.create(pod_body("gated", readinessGates=gates))
        await cluster.until(lambda: cluster.ready("plain"), "plain is ready")
        before = await cluster.pod("plain")
        assert before["spec"]["nodeName"] == "node-0002"
        assert before["status"]["phase"] == "Running"

        gate = {"status": {"conditions": [{"type": "example.io/warm", "status": "True"}]}}
        patch = verbs.patch(
            PODS,
            "gated",
            gate,
            kind=STRATEGIC_PATCH,
            namespace="default",
            subresource="status",
        )
        await cluster.ask(patch)
        await cluster.until(lambda: cluster.ready("gated"), "gated is ready")

        image = {"spec": {"containers": [{"name": "agent", "image": "agent:v2"}]}}
        await cluster.ask(
            verbs.patch(PODS, "plain", image, kind=STRATEGIC_PATCH, namespace="default")
        )
        await cluster.until(lambda: not cluster.ready("plain"), "plain restarts")
        await cluster.until(lambda: cluster.ready("plain"), "plain is ready again")
        after = await cluster.pod("plain")
        [status] = after["status"]["containerStatuses"]
        assert (status["image"], status["restartCount"]) == ("agent:v2", 1)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert "reason" not in condition(after, "Ready")

        await cluster.ask(verbs.delete(PODS, "plain", namespace="default"))
        await cluster.until(lambda: "default/plain" not in cluster.pods, "plain is gone")


async def test_our_controllers_serve_a_real_api_server() -> None:
    bare = PlaneOptions(controllers=None, scheduler=False)
    async with real_cluster(bare, ComponentOptions(nodes=3, behaviour=FAST)) as cluster:
        labels = {"app": "agent"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "agent", "image": "agent:v1"}]},
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        request = verbs.create(
            DAEMONSETS,
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "web"},
                "spec": spec,
            },
            namespace="default",
        )
        above = (await cluster.ask(request))["metadata"]
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": above["uid"]}
        owner |= {"blockOwnerDeletion": True}
        await cluster.create(pod_body("owned", node="node-0001", owners=[owner]))
        await cluster.create(pod_body("free", node="node-0002"))
        big = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "64"}}}]
        await cluster.create(pod_body("big", containers=big))
        await cluster.until(
            lambda: cluster.ready("owned") and cluster.ready("free"), "both are ready"
        )
        big_pod = await cluster.pod("big")
        assert condition(big_pod, "PodScheduled")["message"].startswith(
            "0/3 nodes are available: 3 Insufficient cpu."
        )

        delete = verbs.delete(DAEMONSETS, "web", namespace="default", propagation="Foreground")
        await cluster.ask(delete)
        await cluster.until(lambda: "default/owned" not in cluster.pods, "the pod goes first")

        stop = {"metadata": {"annotations": {"sim.everynode.io/stopped": "true"}}}
        await cluster.ask(verbs.patch(NODES, "node-0002", stop))

        def tainted() -> bool:
            node = cluster.nodes.get("node-0002")
            return node is not None and len(node.spec.taints) == 2

        await cluster.until(tainted, "the silent node is tainted")
        await cluster.until(lambda: not cluster.ready("free"), "its pod is not ready")

        await cluster.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        body = pod_body("inside", node="node-0003")
        await cluster.ask(verbs.create(PODS, body, namespace="team"))
        await cluster.until(lambda: "team/inside" in cluster.pods, "it is there")
        await cluster.ask(verbs.delete(NAMESPACES, "team"))
        await cluster.until(lambda: "team/inside" not in cluster.pods, "the namespace is emptied")
