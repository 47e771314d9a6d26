"""Putting the controller together: watches, the loop, and who may write."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from everynode.api.daemonset import Flavour
from everynode.clock import Clock
from everynode.controller.adoption import Adoption
from everynode.controller.apply import Applier
from everynode.controller.history import History
from everynode.controller.loop import Loop
from everynode.controller.observe import World
from everynode.controller.prepull import PrePull
from everynode.controller.queue import Queue
from everynode.controller.report import Report
from everynode.controller.status import Statuses
from everynode.kube.client import Client
from everynode.kube.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the controller serves."""

    advanced: bool = True
    native: bool = False
    namespace: str = ""  # all namespaces when empty
    pull_always: bool = False  # fetch images ahead for every DaemonSet

    @property
    def flavours(self) -> tuple[Flavour, ...]:
        """The kinds of DaemonSets that are served."""
        wanted = ((Flavour.ADVANCED, self.advanced), (Flavour.NATIVE, self.native))
        return tuple(flavour for flavour, served in wanted if served)


class Controller:
    """One controller process on one API server."""

    def __init__(self, transport: Transport, clock: Clock, options: Options) -> None:
        self._transport = transport
        self._clock = clock
        self.report = Report()
        self.client = Client(transport, clock)
        self.world = World(options.flavours, namespace=options.namespace)
        self.queue = Queue(clock)
        self._loop = self._assemble(options)
        self.watchers = self.world.watchers(transport, clock, self.report)

    def _assemble(self, options: Options) -> Loop:
        client, clock, queue, report = self.client, self._clock, self.queue, self.report
        return Loop(
            clock,
            world=self.world,
            queue=queue,
            applier=Applier(client, clock, done=queue.add, teller=report),
            history=History(
                client, clock, cache=self.world.revisions, again=queue.add_at, teller=report
            ),
            statuses=Statuses(client, clock, again=queue.add_at, teller=report),
            adoption=Adoption(client, clock, world=self.world, teller=report),
            prepull=PrePull(
                client,
                clock,
                world=self.world,
                always=options.pull_always,
                again=queue.add_at,
                teller=report,
            ),
            teller=report,
        )

    async def run(self) -> None:
        """Run until cancelled; the first write comes after everything was listed once."""
        async with asyncio.TaskGroup() as group:
            for watcher in self.watchers:
                group.create_task(watcher.run())
            for watcher in self.watchers:
                await watcher.settled()
            await self._loop.run()
