"""Shared informers: one watch of nodes and one of pods for all components."""

from __future__ import annotations

import asyncio
from typing import Final

from everynode.clock import Clock
from everynode.components.guard import GuardedCache
from everynode.components.objects import FullNode, FullPod, decode_node, decode_pod
from everynode.kube.resources import NODES, PODS
from everynode.kube.transport import Transport
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.watcher import Watcher

BY_NODE: Final = "node"


class SharedInformers:
    """Caches of every node and every pod, kept up to date by one watch each."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self.nodes: Cache[FullNode] = GuardedCache()
        self.pods: Cache[FullPod] = GuardedCache(indexes={BY_NODE: lambda pod: pod.spec.node_name})
        self._watchers = (
            Watcher(transport, clock, resource=NODES, decode=decode_node, consumer=self.nodes),
            Watcher(transport, clock, resource=PODS, decode=decode_pod, consumer=self.pods),
        )

    async def wait_for_sync(self) -> None:
        """Wait until both caches are complete."""
        for watcher in self._watchers:
            await watcher.settled()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(watcher.run())
