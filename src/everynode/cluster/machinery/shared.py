"""The one watch of nodes and the one watch of pods that all of the machinery shares."""

from __future__ import annotations

import asyncio
from typing import Final

from everynode.clock import Clock
from everynode.cluster.machinery.objects import Node, Pod, decode_node, decode_pod
from everynode.kube.cache import Cache
from everynode.kube.resources import NODES, PODS
from everynode.kube.transport import Transport
from everynode.kube.watch import Watcher

NODE: Final = "node"


class Shared:
    """Every node and every pod, kept up to date by one watch each."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self.nodes: Cache[Node] = Cache()
        self.pods: Cache[Pod] = Cache(indexes={NODE: lambda pod: pod.spec.node_name})
        self._watchers = (
            Watcher(transport, clock, resource=NODES, decode=decode_node, consumer=self.nodes),
            Watcher(transport, clock, resource=PODS, decode=decode_pod, consumer=self.pods),
        )

    async def settled(self) -> None:
        """Wait until both copies are whole."""
        for watcher in self._watchers:
            await watcher.settled()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(watcher.run())
