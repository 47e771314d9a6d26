"""Components: wires kubelets, scheduler and controllers to one API server, ours or a real one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from everynode.clock import Clock
from everynode.components.controllers.garbage_collector import GarbageCollector
from everynode.components.controllers.namespaces import NamespaceController
from everynode.components.controllers.node_lifecycle import NodeLifecycleController
from everynode.components.controllers.pod_gc import PodGarbageCollector
from everynode.components.controllers.taint_eviction import TaintEvictionController
from everynode.components.events import EventRecorder
from everynode.components.informers import SharedInformers
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.kubelet.image_config import ImageConfigWatcher
from everynode.components.kubelet.leases import LeaseRenewer
from everynode.components.kubelet.node import SimulationSettings
from everynode.components.kubelet.nodes import SimulatedNodes
from everynode.components.request_queue import MAX_IN_FLIGHT, RequestQueue
from everynode.components.scheduler.scheduler import Scheduler
from everynode.components.timers import Timers
from everynode.kube.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """Which components run, and how they behave."""

    nodes: int = 0  # created at the start; others may be added and deleted
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    behaviour: Behaviour = field(default_factory=Behaviour)
    # Whether to run scheduler, garbage collector and namespace controller.
    controllers: bool = True
    # Whether to taint nodes by their conditions and to evict pods from them.
    node_controllers: bool = True
    # Seconds between two renewals of a node's lease, for a node lifecycle controller that is not
    # ours. Ours needs no leases, hence no writes: 0.
    heartbeat: float = 0.0
    max_in_flight: int = MAX_IN_FLIGHT


class Components:
    """Kubelets for every node and, as the options say, the controllers of a control plane."""

    def __init__(self, transport: Transport, clock: Clock, options: ComponentOptions) -> None:
        self.options = options
        self.settings = SimulationSettings(clock, options.behaviour)
        self.informers = SharedInformers(transport, clock)
        self.timers = Timers(clock)
        self.requests = RequestQueue(transport, max_in_flight=options.max_in_flight)
        recorder = EventRecorder(clock, self.requests, enabled=options.behaviour.events)
        self.simulated_nodes = SimulatedNodes(
            self.informers,
            self.settings,
            timers=self.timers,
            requests=self.requests,
            recorder=recorder,
        )
        image_config = ImageConfigWatcher(
            transport, clock, on_change=self.simulated_nodes.set_images, recorder=recorder
        )
        self._tasks = [
            self.timers.run,
            self.requests.run,
            self.informers.run,
            image_config.watcher.run,
        ]
        # The order in which components subscribe to the informers is the order in which they
        # handle a change; recorded seeds of the simulator depend on it.
        if options.controllers:
            scheduler = Scheduler(
                self.informers, clock, timers=self.timers, requests=self.requests, recorder=recorder
            )
            collector = GarbageCollector(
                transport, clock, informers=self.informers, timers=self.timers
            )
            namespaces = NamespaceController(transport, clock, timers=self.timers)
            self._tasks += [scheduler.run, collector.run, namespaces.run]
        self._pod_gc: PodGarbageCollector | None = None
        if options.node_controllers:
            self._pod_gc = self._add_node_controllers(recorder)
        if options.heartbeat:
            LeaseRenewer(
                self.informers,
                clock,
                interval=options.heartbeat,
                is_alive=self.simulated_nodes.is_alive,
                timers=self.timers,
                requests=self.requests,
            )
        self._ready = asyncio.Event()

    def _add_node_controllers(self, recorder: EventRecorder) -> PodGarbageCollector:
        """Add controllers that have no task of their own: watches and timers call them."""
        informers, settings = self.informers, self.settings
        timers, requests = self.timers, self.requests
        NodeLifecycleController(
            informers,
            settings,
            is_alive=self.simulated_nodes.is_alive,
            timers=timers,
            requests=requests,
            recorder=recorder,
        )
        TaintEvictionController(
            informers, settings, timers=timers, requests=requests, recorder=recorder
        )
        return PodGarbageCollector(informers, settings, timers=timers, requests=requests)

    async def ready(self) -> None:
        """Wait until every node is registered."""
        await self._ready.wait()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for run in self._tasks:
                group.create_task(run())
            await self.informers.wait_for_sync()
            if self._pod_gc is not None:
                self._pod_gc.check_all_pods()
            await self.simulated_nodes.register(self.options.nodes, self.options.zones)
            self._ready.set()
