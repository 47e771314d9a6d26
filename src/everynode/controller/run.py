"""Putting the controller together: watches, terms of leadership, and the loop of each term."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from everynode.api.daemonset import Flavour
from everynode.clock import Clock
from everynode.controller.adoption import Adoption
from everynode.controller.apply import WRITERS, Applier
from everynode.controller.events import Recorder
from everynode.controller.health import Health
from everynode.controller.history import History
from everynode.controller.leader import Leadership, Unopposed
from everynode.controller.loop import Loop
from everynode.controller.metrics import Metrics
from everynode.controller.observe import World
from everynode.controller.prepull import PrePull
from everynode.controller.queue import Queue
from everynode.controller.report import Report
from everynode.controller.status import Statuses, Truces
from everynode.kube.client import Client
from everynode.kube.transport import Transport

_CLOCK_SET: Final = 2.0  # seconds by which a clock that is only corrected never moves at once
_CLOCK_LOOK: Final = 10.0
# For gc.set_threshold in a process of ours: what an event leaves behind goes with it, cycles are
# few, and looking for them at Python's usual pace takes a twentieth of our time.
GARBAGE: Final = (10_000, 20, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the controller serves."""

    advanced: bool = True
    native: bool = False
    namespace: str = ""  # all namespaces when empty
    pull_always: bool = False  # fetch images ahead for every DaemonSet
    forgiving: bool = True  # a DaemonSet that we stumble over does not stop the others

    @property
    def flavours(self) -> tuple[Flavour, ...]:
        """The kinds of DaemonSets that are served."""
        wanted = ((Flavour.ADVANCED, self.advanced), (Flavour.NATIVE, self.native))
        return tuple(flavour for flavour, served in wanted if served)


class Controller:
    """One controller process on one API server."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        options: Options,
        *,
        leadership: Leadership | None = None,
    ) -> None:
        self._clock = clock
        self._options = options
        self.metrics = Metrics(clock)
        self.leadership: Leadership = leadership or Unopposed()
        self.client = Client(
            transport,
            clock,
            writes_at_once=WRITERS,
            permit=self.leadership.permit,
            meter=self.metrics.wrote,
        )
        # Events have slots of their own: no pod waits for them.
        self.recorder = Recorder(
            Client(
                transport,
                clock,
                writes_at_once=2,
                permit=self.leadership.permit,
                meter=self.metrics.wrote,
            ),
            clock,
        )
        self.report = Report(self.metrics, self.recorder, forgiving=options.forgiving)
        self.world = World(options.flavours, namespace=options.namespace)
        self.watchers = self.world.watchers(transport, clock, self.report)
        self.health = Health()
        self._queue = Queue(clock)
        self._follow()

    def _follow(self) -> None:
        self.metrics.follow_leader(lambda: self.leadership.permit() > 0)
        self.metrics.follow_queue(lambda: len(self._queue))
        self.metrics.follow_watches(self.watchers)
        self.metrics.follow_events(self.recorder)
        for watcher in self.watchers:
            self.health.add_watch(watcher, self._clock)

    async def run(self) -> None:
        """Run until cancelled; then let go of the lead once our writes are over."""
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(watcher.run()) for watcher in self.watchers]
            background.append(group.create_task(self.leadership.run()))
            background.append(group.create_task(self.recorder.run()))
            working = group.create_task(self._serve())
            try:
                await asyncio.shield(working)
            finally:
                # Writes under way are answered while the tasks that wait for them still run.
                await self.leadership.resign(self.client.settle)
                for task in (working, *background):
                    task.cancel()

    async def _serve(self) -> None:
        """Work in every term we are elected for; watch, and keep warm, in between."""
        for watcher in self.watchers:
            await watcher.settled()
        while True:
            await self.leadership.elected()
            await self._lead()

    async def _lead(self) -> None:
        """Work until the lead is lost.

        A clock that is set begins a new term, but whom we have made a truce with we still know.
        Others who lead write the statuses that we would have: no truce outlives a lost lead.
        """
        truces: Truces = {}
        async with asyncio.TaskGroup() as group:
            lost = group.create_task(self.leadership.lost())
            while not lost.done():
                await self._catch_up()
                if not lost.done():
                    await self._serve_term(lost, truces)

    async def _catch_up(self) -> None:
        # A write of an earlier term of ours may still happen: it must be in what we list.
        await self.client.settle()
        # What was listed before the term began may lack the last leader's last writes.
        async with asyncio.TaskGroup() as group:
            for watcher in self.watchers:
                if not watcher.missing:
                    group.create_task(watcher.refresh())

    async def _serve_term(self, lost: asyncio.Task[None], truces: Truces) -> None:
        self.world.start_over()
        loop = self._assemble(truces)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop.run()), group.create_task(self._clock_set())]
            await asyncio.wait((lost, *tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()

    async def _clock_set(self) -> None:
        """Wait until the wall clock is set, or the machine has slept.

        Whatever we remember for a time of day is then meant for another time: the term begins anew.
        """
        clock = self._clock
        begun = clock.now() - clock.monotonic()
        while abs(clock.now() - clock.monotonic() - begun) < _CLOCK_SET:
            await clock.sleep(_CLOCK_LOOK)

    def _assemble(self, truces: Truces) -> Loop:
        client, clock, report = self.client, self._clock, self.report
        queue = self._queue = Queue(clock)
        return Loop(
            clock,
            world=self.world,
            queue=queue,
            applier=Applier(
                client, clock, now=queue.add_shortly, soon=queue.add_soon, teller=report
            ),
            history=History(
                client, clock, cache=self.world.revisions, again=queue.add_at, teller=report
            ),
            statuses=Statuses(client, clock, again=queue.add_at, teller=report, truces=truces),
            adoption=Adoption(client, clock, world=self.world, again=queue.add_at, teller=report),
            prepull=PrePull(
                client,
                clock,
                world=self.world,
                always=self._options.pull_always,
                again=queue.add_at,
                teller=report,
            ),
            teller=report,
        )
