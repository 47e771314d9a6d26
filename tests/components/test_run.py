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


class Judge:
    """A real API server, and machinery of ours behind it."""

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
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def ready(self, name: str) -> bool:
        pod: FullPod | None = self.pods.get(f"default/{name}")
        found = pod.condition("Ready") if pod is not None else None
        return found is not None and found.status == "True"


@asynccontextmanager
async def judged(plane: PlaneOptions, options: ComponentOptions) -> AsyncIterator[Judge]:
    kubernetes.programs()
    clock = SystemClock()
    async with ControlPlane(plane) as running:
        transport = HttpTransport(
            load_cluster_config(clock, kubeconfig=str(running.kubeconfig)), clock
        )
        components = Components(transport, clock, options)
        judge = Judge(transport, components)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(components.run())
                await components.ready()
                yield judge
                task.cancel()
        finally:
            await transport.close()


async def test_our_kubelets_serve_a_real_control_plane() -> None:
    options = ComponentOptions(
        nodes=5, behaviour=FAST, controllers=False, node_controllers=False, heartbeat=5.0
    )
    async with judged(PlaneOptions(), options) as judge:
        gates = [{"conditionType": "example.io/warm"}]
        await judge.create(pod_body("plain", node="node-0002"))
        await judge.create(pod_body("gated", readinessGates=gates))
        await judge.until(lambda: judge.ready("plain"), "plain is ready")
        before = await judge.pod("plain")
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
        await judge.ask(patch)
        await judge.until(lambda: judge.ready("gated"), "gated is ready")

        image = {"spec": {"containers": [{"name": "agent", "image": "agent:v2"}]}}
        await judge.ask(
            verbs.patch(PODS, "plain", image, kind=STRATEGIC_PATCH, namespace="default")
        )
        await judge.until(lambda: not judge.ready("plain"), "plain restarts")
        await judge.until(lambda: judge.ready("plain"), "plain is ready again")
        after = await judge.pod("plain")
        [status] = after["status"]["containerStatuses"]
        assert (status["image"], status["restartCount"]) == ("agent:v2", 1)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert "reason" not in condition(after, "Ready")

        await judge.ask(verbs.delete(PODS, "plain", namespace="default"))
        await judge.until(lambda: "default/plain" not in judge.pods, "plain is gone")


async def test_our_controllers_serve_a_real_api_server() -> None:
    bare = PlaneOptions(controllers=None, scheduler=False)
    async with judged(bare, ComponentOptions(nodes=3, behaviour=FAST)) as judge:
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
        above = (await judge.ask(request))["metadata"]
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": above["uid"]}
        owner |= {"blockOwnerDeletion": True}
        await judge.create(pod_body("owned", node="node-0001", owners=[owner]))
        await judge.create(pod_body("free", node="node-0002"))
        big = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "64"}}}]
        await judge.create(pod_body("big", containers=big))
        await judge.until(lambda: judge.ready("owned") and judge.ready("free"), "both are ready")
        big_pod = await judge.pod("big")
        assert condition(big_pod, "PodScheduled")["message"].startswith(
            "0/3 nodes are available: 3 Insufficient cpu."
        )

        delete = verbs.delete(DAEMONSETS, "web", namespace="default", propagation="Foreground")
        await judge.ask(delete)
        await judge.until(lambda: "default/owned" not in judge.pods, "the pod goes first")

        stop = {"metadata": {"annotations": {"sim.everynode.io/stopped": "true"}}}
        await judge.ask(verbs.patch(NODES, "node-0002", stop))

        def tainted() -> bool:
            node = judge.nodes.get("node-0002")
            return node is not None and len(node.spec.taints) == 2

        await judge.until(tainted, "the silent node is tainted")
        await judge.until(lambda: not judge.ready("free"), "its pod is not ready")

        await judge.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        body = pod_body("inside", node="node-0003")
        await judge.ask(verbs.create(PODS, body, namespace="team"))
        await judge.until(lambda: "team/inside" in judge.pods, "it is there")
        await judge.ask(verbs.delete(NAMESPACES, "team"))
        await judge.until(lambda: "team/inside" not in judge.pods, "the namespace is emptied")
