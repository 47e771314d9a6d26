"""Putting the machinery together: what runs behind an API, ours or a real one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from everynode.clock import Clock
from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.catalogue import Catalogue
from everynode.cluster.machinery.collector import Collector
from everynode.cluster.machinery.events import Recorder
from everynode.cluster.machinery.eviction import TaintEviction
from everynode.cluster.machinery.fleet import Fleet
from everynode.cluster.machinery.leases import Leases
from everynode.cluster.machinery.namespaces import NamespaceController
from everynode.cluster.machinery.nodes import NodeController
from everynode.cluster.machinery.orphans import OrphanedPods
from everynode.cluster.machinery.scheduler import Scheduler
from everynode.cluster.machinery.seats import Setting
from everynode.cluster.machinery.shared import Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import AT_ONCE, Writes
from everynode.kube.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to run."""

    nodes: int = 0  # created at the start; others may come and go
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    behaviour: Behaviour = field(default_factory=Behaviour)
    # Whether to be the control plane too: scheduler, garbage collector, namespaces.
    controllers: bool = True
    # Whether to taint nodes by their state and to evict pods from them, as a control plane does.
    node_controllers: bool = True
    # Seconds between two renewals of a node's lease, for a node controller that is not ours; 0
    # where ours, which needs no writes, looks after the nodes.
    heartbeat: float = 0.0
    writes_at_once: int = AT_ONCE


class Machinery:
    """Kubelets for every node and, if wanted, the controllers of a control plane."""

    def __init__(self, transport: Transport, clock: Clock, options: Options) -> None:
        self.options = options
        self.setting = Setting(clock, options.behaviour)
        self.shared = Shared(transport, clock)
        self.timers = Timers(clock)
        self.writes = Writes(transport, at_once=options.writes_at_once)
        recorder = Recorder(clock, self.writes, enabled=options.behaviour.events)
        self.fleet = Fleet(
            self.shared, self.setting, timers=self.timers, writes=self.writes, recorder=recorder
        )
        catalogue = Catalogue(transport, clock, changed=self.fleet.set_images, recorder=recorder)
        self._parts = [
            self.timers.run,
            self.writes.run,
            self.shared.run,
            catalogue.watcher.run,
        ]
        if options.controllers:
            scheduler = Scheduler(
                self.shared, clock, timers=self.timers, writes=self.writes, recorder=recorder
            )
            collector = Collector(transport, clock, shared=self.shared, timers=self.timers)
            namespaces = NamespaceController(transport, clock, timers=self.timers)
            self._parts += [scheduler.run, collector.run, namespaces.run]
        self._orphans: OrphanedPods | None = None
        if options.node_controllers:
            self._look_after_nodes(recorder)
        if options.heartbeat:
            Leases(
                self.shared,
                clock,
                interval=options.heartbeat,
                beats=self.fleet.beats,
                timers=self.timers,
                writes=self.writes,
            )
        self._ready = asyncio.Event()

    def _look_after_nodes(self, recorder: Recorder) -> None:
        """Controllers that only react need no task of their own: they live on the watches."""
        shared, setting, timers, writes = self.shared, self.setting, self.timers, self.writes
        NodeController(
            shared,
            setting,
            beats=self.fleet.beats,
            timers=timers,
            writes=writes,
            recorder=recorder,
        )
        TaintEviction(shared, setting, timers=timers, writes=writes, recorder=recorder)
        self._orphans = OrphanedPods(shared, setting, timers=timers, writes=writes)

    async def ready(self) -> None:
        """Wait until every node is registered."""
        await self._ready.wait()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part())
            await self.shared.settled()
            if self._orphans is not None:
                self._orphans.look_at_all()
            await self.fleet.register(self.options.nodes, self.options.zones)
            self._ready.set()
