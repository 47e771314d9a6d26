"""Controller: the watches, the terms of leadership, and one reconciler per term."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from everynode.api.daemonset import Flavour
from everynode.clock import Clock
from everynode.controller.adoption import Adoption
from everynode.controller.dry_run import DryRuns
from everynode.controller.events import Recorder
from everynode.controller.executor import MAX_CONCURRENT_WRITES, Executor
from everynode.controller.health import Health
from everynode.controller.informers import Informers
from everynode.controller.leader import AlwaysLeader, Leadership
from everynode.controller.metrics import Metrics
from everynode.controller.orphan_watches import OrphanWatches
from everynode.controller.prepull import PrePull
from everynode.controller.reconcile import Reconciler
from everynode.controller.reporter import ControllerReporter
from everynode.controller.revisions import RevisionHistory
from everynode.controller.room import Rooms
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.status import StatusConflicts, StatusWriter
from everynode.decide.revisions.target import TemplateDefaults, no_extra_defaults
from everynode.kube.client import Client
from everynode.kube.transport import Transport

_CLOCK_SET: Final = 2.0  # seconds; time synchronisation moves a clock by less at once
_CLOCK_CHECK: Final = 10.0
# At a time, beside those of the executor.
_OTHER_WRITES: Final = 16
_EVENTS: Final = 2
_FLUSH_SECONDS: Final = 2.0  # at shutdown, for the Events that are not sent yet
# For gc.set_threshold: objects of an event are freed by reference counting, cycles are few, and
# searching for them at Python's default rate takes a twentieth of the CPU time.
GC_THRESHOLD: Final = (10_000, 20, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """Options of the controller: which DaemonSets it serves, and how."""

    advanced: bool = True
    native: bool = False
    namespace: str = ""  # all namespaces when empty
    pull_always: bool = False  # pull images ahead for every DaemonSet
    by_scheduler: bool = True  # a scheduler binds new pods; otherwise they are created bound
    forgiving: bool = True  # an unexpected exception in one DaemonSet does not stop the others
    instance: str = ""  # the name of this pod or host, shown in Events where known
    # Set on templates before they are compared, beside the defaults of our own table.
    extra_defaults: TemplateDefaults = no_extra_defaults

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
        options: ControllerOptions,
        *,
        leadership: Leadership | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._options = options
        self.metrics = Metrics(clock)
        self.leadership: Leadership = leadership or AlwaysLeader()
        # Three clients, so that a write to a pod waits for a worker of the executor, where it can
        # still be taken back, and not for writes of statuses, revisions, Events and the like.
        self.pod_client = self._make_client(MAX_CONCURRENT_WRITES)
        self.client = self._make_client(_OTHER_WRITES)
        self.recorder = Recorder(self._make_client(_EVENTS), clock, instance=options.instance)
        self.reporter = ControllerReporter(
            self.metrics, self.recorder, contain_failures=options.forgiving
        )
        self.informers = Informers(options.flavours, namespace=options.namespace)
        self.watchers = self.informers.watchers(transport, clock, self.reporter)
        self.health = Health()
        self._queue = ReconcileQueue(clock)
        self._follow()

    def _make_client(self, writes_at_once: int) -> Client:
        return Client(
            self._transport,
            self._clock,
            writes_at_once=writes_at_once,
            write_budget=self.leadership.write_budget_seconds,
            meter=self.metrics.wrote,
            left_out=lambda resource, message: self.reporter.object_left_out(resource, message),
        )

    def _follow(self) -> None:
        self.metrics.follow_leader(lambda: self.leadership.write_budget_seconds() > 0)
        self.metrics.follow_daemonsets(lambda: self.informers.states.values())
        self.metrics.follow_queue(lambda: len(self._queue))
        self.metrics.follow_watches(self.watchers)
        self.metrics.follow_events(self.recorder)
        for watcher in self.watchers:
            self.health.add_watch(watcher, self._clock)

    async def run(self) -> None:
        """Run until cancelled; then send waiting Events and release the lease."""
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(watcher.run()) for watcher in self.watchers]
            background.append(group.create_task(self.leadership.run()))
            background.append(group.create_task(self.recorder.run()))
            working = group.create_task(self._serve())
            try:
                await asyncio.shield(working)
            finally:
                # Events first: nothing may be written once the lead is resigned.
                await self.recorder.flush(_FLUSH_SECONDS)
                # Writes that were sent get their responses: the tasks that wait for them still run.
                await self.leadership.resign(self._settle)
                for task in (working, *background):
                    task.cancel()

    async def _serve(self) -> None:
        """Reconcile in every term that we lead; between terms only the caches are kept current."""
        for watcher in self.watchers:
            await watcher.settled()
        while True:
            await self.leadership.elected()
            await self._lead()

    async def _lead(self) -> None:
        """Reconcile until the lead is lost.

        Setting the clock begins a new term; status conflicts are kept then. They end when the
        lead is lost: what the next leader writes is not written by a foreign manager.
        """
        conflicts: StatusConflicts = {}
        async with asyncio.TaskGroup() as group:
            lost = group.create_task(self.leadership.lost())
            while not lost.done():
                await _until_lost(lost, self._catch_up())
                if not lost.done():
                    await self._serve_term(lost, conflicts)
        # What the next leader writes is not ours to react to.
        self.informers.remove_handler()
        self.metrics.lead_lost()

    async def _settle(self) -> None:
        """Wait until no write to pods, statuses or revisions can take effect any more."""
        await self.pod_client.settle()
        await self.client.settle()

    async def _catch_up(self) -> None:
        # Writes of our earlier terms must be over, so that the lists show them.
        await self._settle()
        # The caches may lack the last writes of the previous leader.
        async with asyncio.TaskGroup() as group:
            for watcher in self.watchers:
                if not watcher.missing:
                    group.create_task(watcher.refresh())

    async def _serve_term(self, lost: asyncio.Task[None], conflicts: StatusConflicts) -> None:
        self.informers.start_over()
        reconciler = self._assemble(conflicts)
        await _until_lost(lost, reconciler.run(), self._clock_set())

    async def _clock_set(self) -> None:
        """Return when the wall clock was set, or the machine has slept.

        All times that were remembered are wrong then, so a new term begins.
        """
        clock = self._clock
        begun = clock.now() - clock.monotonic()
        while abs(clock.now() - clock.monotonic() - begun) < _CLOCK_SET:
            await clock.sleep(_CLOCK_CHECK)

    def _assemble(self, conflicts: StatusConflicts) -> Reconciler:
        client, clock, informers, reporter = self.client, self._clock, self.informers, self.reporter
        queue = self._queue = ReconcileQueue(clock)
        return Reconciler(
            clock,
            informers=informers,
            queue=queue,
            executor=Executor(self.pod_client, clock, queue=queue, reporter=reporter),
            history=RevisionHistory(
                client,
                clock,
                cache=informers.revisions,
                queue=queue,
                reporter=reporter,
                extra_defaults=self._options.extra_defaults,
            ),
            statuses=StatusWriter(
                client, clock, queue=queue, reporter=reporter, conflicts=conflicts
            ),
            adoption=Adoption(client, clock, informers=informers, queue=queue, reporter=reporter),
            orphans=OrphanWatches(self._transport, clock),
            prepull=PrePull(
                client,
                clock,
                informers=informers,
                always=self._options.pull_always,
                by_scheduler=self._options.by_scheduler,
                queue=queue,
                reporter=reporter,
            ),
            dry_runs=DryRuns(client, clock, queue=queue, reporter=reporter),
            rooms=Rooms(
                client,
                clock,
                informers=informers,
                queue=queue,
                reporter=reporter,
                by_scheduler=self._options.by_scheduler,
            ),
            reporter=reporter,
            by_scheduler=self._options.by_scheduler,
        )


async def _until_lost(lost: asyncio.Task[None], *work: Coroutine[Any, Any, None]) -> None:
    """Run until the lead is lost or one of these has ended; the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        await asyncio.wait((lost, *tasks), return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
