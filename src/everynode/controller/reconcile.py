"""Reconciler: one DaemonSet at a time is observed, decided, and its writes are started.

`decide` returns the actions; the executor, the revision history and the status writer send them.
Nothing here waits for a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from math import inf
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import ControllerRevision, Pod
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.adoption import Adoption
from everynode.controller.dry_run import DryRuns
from everynode.controller.executor import Executor
from everynode.controller.informers import (
    DaemonSetGone,
    DaemonSetUpdated,
    Effect,
    Informers,
    OrphanSeen,
    PodRelabelled,
    Reconcile,
)
from everynode.controller.missing_pods import MissingPods
from everynode.controller.orphan_watches import OrphanWatches
from everynode.controller.pending_writes import PendingWrite
from everynode.controller.prepull import PrePull
from everynode.controller.reporter import Reporter
from everynode.controller.retries import Failures
from everynode.controller.revisions import RevisionHistory
from everynode.controller.room import Rooms
from everynode.controller.scheduling import ReconcileQueue, Urgency
from everynode.controller.state import DaemonSetState
from everynode.controller.status import StatusWriter
from everynode.controller.wallclock import WallClock
from everynode.decide.actions import PodAction
from everynode.decide.fleet.verification import Verification
from everynode.decide.ledger import Ledger
from everynode.decide.plan import make_plan
from everynode.decide.revisions.ownership import Claim, claim, claim_revision
from everynode.decide.revisions.target import TargetChoice, relabel_patch

_FAILED: Final = Backoff(first=2.0, longest=300.0)  # after a reconcile raised an exception


class Reconciler:
    """Reconciles one DaemonSet after the other for as long as we lead."""

    def __init__(
        self,
        clock: Clock,
        *,
        informers: Informers,
        queue: ReconcileQueue,
        executor: Executor,
        history: RevisionHistory,
        statuses: StatusWriter,
        adoption: Adoption,
        orphans: OrphanWatches,
        prepull: PrePull,
        dry_runs: DryRuns,
        rooms: Rooms,
        reporter: Reporter,
        by_scheduler: bool = True,
    ) -> None:
        self._clock = clock
        self._informers = informers
        self._queue = queue
        self._executor = executor
        self._history = history
        self._statuses = statuses
        self._adoption = adoption
        self._orphans = orphans
        self._prepull = prepull
        self._dry_runs = dry_runs
        self._rooms = rooms
        self._reporter = reporter
        self._by_scheduler = by_scheduler
        self._choices: dict[str, TargetChoice] = {}  # the target revision, by DaemonSet
        self._failures: dict[str, Failures] = {}  # reconciles that raised, by DaemonSet
        self._missing = MissingPods()
        self._wall = WallClock(clock)
        self._tasks: asyncio.TaskGroup | None = None
        informers.set_handler(self.handle)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for key in sorted(self._informers.states):
                self._queue.add(key)
            self._tasks.create_task(self._executor.run())
            while True:
                key = await self._queue.get()
                state = self._informers.states.get(key)
                if state is not None:
                    began = self._clock.monotonic()
                    self._follow_clock()
                    self._try_reconcile(state, self._clock.now())
                    self._reporter.reconciled(state, self._clock.monotonic() - began)
                await self._clock.sleep(0)

    def _follow_clock(self) -> None:
        """Keep all remaining waits as they were if the wall clock was set."""
        lost = self._wall.set_back()
        if lost < 0:
            for state in self._informers.states.values():
                state.clock_set_forward(-lost)
        if lost <= 0:
            return
        now = self._clock.now()
        self._reporter.clock_set_back(lost)
        self._statuses.clock_set_back(lost)
        self._dry_runs.clock_set_back(lost)
        self._rooms.clock_set_back()
        for failures in self._failures.values():
            failures.clock_set_back(lost)
        for key in sorted(self._informers.states):
            self._informers.states[key].clock_set_back(lost, now)
            self._queue.add(key)

    # --- One reconcile -----------------------------------------------------------------------

    def _try_reconcile(self, state: DaemonSetState, now: float) -> None:
        """Reconcile a DaemonSet; if that raises, back off from it alone."""
        failures = self._failures.get(state.key)
        if failures is not None and now < failures.retry_at:
            self._queue.add_at(state.key, failures.retry_at)
            return
        try:
            self._reconcile(state, now)
            self._failures.pop(state.key, None)
        except Exception as error:
            failures = self._failures.setdefault(state.key, Failures())
            failures.add(now, _FAILED)
            state.discard_ledger()
            self._queue.add_at(state.key, failures.retry_at)
            self._reporter.reconcile_failed(state, error)

    def _reconcile(self, state: DaemonSetState, now: float) -> None:
        if state.ds.metadata.deletion_timestamp is not None:
            return
        if not state.ds.selector.match_labels and not state.ds.selector.match_expressions:
            self._reporter.selector_is_empty(state)
            return
        backing_off = self._statuses.backing_off_until(state)
        if backing_off <= now and self._missing.forget(state.key):
            state.invalidate_plan()  # what waited for the end of the conflict is decided anew
        assert self._tasks is not None
        self._orphans.follow(state, self._unlabelled_seen, self._tasks)
        if self._adoption.due(state, now):
            self._spawn(self._adoption.scan(state))
        # At every reconcile, because getting a key from the queue removes all its times.
        wake_at = self._adoption.next_scan(state)
        contested = backing_off > now
        if contested:
            wake_at = min(wake_at, backing_off)
        if self._adoption.done(state) and (
            not state.plan_outdated or self._make_plan(state, now, relabel=not contested)
        ):
            decide = self._heal if contested else self._decide
            wake_at = min(wake_at, decide(state, now))
        self._queue.add_at(state.key, wake_at)

    def _make_plan(self, state: DaemonSetState, now: float, *, relabel: bool) -> bool:
        """Choose the target and make the plan; False while revisions have to be written first."""
        if state.writing_revisions:
            return False
        choice = self._history.choose(state)
        if choice.actions:
            due_at = self._history.due_at(state, choice.actions)
            if due_at > now:
                self._queue.add_at(state.key, due_at)
                return False
            self._spawn(self._history.write(state, choice.actions))
            return False
        revisions, faults = self._history.revisions(state)
        faults = [*state.ds.faults, *faults, *choice.faults]
        ds = msgspec.structs.replace(state.ds, faults=tuple(faults))
        self._choices[state.key] = choice
        state.set_plan(
            make_plan(
                ds,
                choice.target,
                revisions,
                choice.from_hash,
                by_scheduler=self._by_scheduler,
                extra_defaults=self._history.extra_defaults,
            )
        )
        if choice.duplicates and relabel:
            patches = (relabel_patch(pod, choice) for pod in state.pods())
            self._execute(state, [patch for patch in patches if patch is not None], now)
        return True

    def _decide(self, state: DaemonSetState, now: float) -> float:
        """Decide and start the writes; return when to reconcile again if nothing changes."""
        ledger = self._observe(state, now)
        observed = state.ds.status
        collisions = self._choices[state.key].collision_count
        if (collisions or 0) > (observed.collision_count or 0):
            observed = msgspec.structs.replace(observed, collision_count=collisions)
        decision = ledger.decide(
            now,
            observed,
            create_limit=state.create_limit,
            verdict=state.verdict,
            check_rooms=True,
            troubles=state.troubles,
        )
        self._execute(state, decision.actions, now)
        status_at = self._write_status(state, decision.status, now)
        for notice in decision.notices:
            self._reporter.notice(state, notice)
        for failed in decision.failed_nodes:
            self._reporter.node_failed(state, failed.node, failed.error)
        dry_run_at = self._dry_run(state, decision.verification, now)
        room_at = self._check_rooms(state, decision.room_checks, now)
        prune_at = self._maintain_history(state, complete=decision.complete, now=now)
        self._pull_ahead(state)
        deferred_until = state.changed.deferred_until
        due = (decision.wake_at, state.verify_at, deferred_until)
        times = (*due, status_at, dry_run_at, room_at, prune_at)
        return min([at for at in times if at is not None], default=inf)

    def _heal(self, state: DaemonSetState, now: float) -> float:
        """While another manager writes the status: create pods that stay missing (R9)."""
        ledger = self._observe(state, now)
        nodes, due_at = self._missing.due(state.key, ledger.missing(now), now)
        decision = ledger.decide(
            now,
            state.ds.status,
            create_limit=state.create_limit,
            verdict=state.verdict,
            heal_only=nodes,
        )
        self._execute(state, decision.actions, now)
        times = (due_at, decision.wake_at, state.verify_at, state.changed.deferred_until)
        return min([at for at in times if at is not None], default=inf)

    def _observe(self, state: DaemonSetState, now: float) -> Ledger:
        """Return the ledger with all changes; read the pods of writes that are not seen."""
        assert state.ledger is not None
        state.refresh_ledger(self._informers.pods.version, now, lost=self._wall.behind())
        ahead = state.take_unreported_ahead()
        if ahead:
            self._reporter.times_ahead(state, ahead)
        for node, write in state.overdue_writes(now):
            self._spawn(self._verify(state, node, write))
        return state.ledger

    def _execute(self, state: DaemonSetState, actions: Sequence[PodAction], now: float) -> None:
        for action in actions:
            if action.node not in state.writes:
                self._executor.put(state, state.begin_write(action, now))

    def _write_status(
        self, state: DaemonSetState, status: DaemonSetStatus, now: float
    ) -> float | None:
        """Write the status if it is due; return when it will be, if later."""
        due_at = self._statuses.due_at(state, status)
        if due_at is not None and due_at > now:
            return due_at
        self._reporter.status_decided(state, status)
        if due_at is not None:
            self._spawn(self._statuses.write(state, status))
        return None

    def _dry_run(
        self, state: DaemonSetState, wanted: Verification | None, now: float
    ) -> float | None:
        """Start the dry run that the decision asks for; return when, if not yet."""
        if wanted is None:
            return None
        due_at = self._dry_runs.due_at(state, wanted)
        if due_at is not None and due_at <= now:
            self._spawn(self._dry_runs.start(state, wanted))
            return None
        return due_at

    def _check_rooms(self, state: DaemonSetState, nodes: Sequence[str], now: float) -> float | None:
        """Start the observations that the decision asks for; return when the next one is due."""
        if not nodes:
            return None
        observations, due_at = self._rooms.start(state, nodes, now)
        for observation in observations:
            self._spawn(observation)
        return due_at

    def _maintain_history(
        self, state: DaemonSetState, *, complete: bool, now: float
    ) -> float | None:
        """Note a complete target, delete revisions beyond the limit; return when, if not yet."""
        choice = self._choices.get(state.key)
        if choice is None or state.writing_revisions:
            return None
        note = self._history.note_of_completion(state, choice.target) if complete else ()
        due_later: list[float] = []
        for actions in (note, self._history.unneeded(state, choice.target)):
            due_at = self._history.due_at(state, actions) if actions else inf
            if due_at <= now:
                self._spawn(self._history.write(state, actions))
                return None
            due_later.append(due_at)
        return min(due_later)

    def _pull_ahead(self, state: DaemonSetState) -> None:
        if not self._prepull.wanted(state):
            return
        revisions, _ = self._history.revisions(state)
        step = self._prepull.step(state, self._choices[state.key].target, revisions)
        if step is not None:
            self._spawn(step)

    async def _verify(self, state: DaemonSetState, node: str, write: PendingWrite) -> None:
        await self._executor.verify(state, node, write)
        self._queue.add(state.key)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        self._tasks.create_task(work)

    # --- Changes -----------------------------------------------------------------------------

    def handle(self, effect: Effect) -> None:
        """React to a change that the informers saw."""
        match effect:
            case Reconcile(state, urgency):
                self._schedule(state, urgency)
            case DaemonSetUpdated(state, before, plan_outdated):
                is_new = self._statuses.observe(before, state.ds, state)
                # Mostly this is our own status, which needs no reconcile.
                if plan_outdated:
                    self._schedule(state, Urgency.UNBLOCKS)
                elif is_new:
                    self._schedule(state, Urgency.DEFERRED)
            case PodRelabelled(state, pod):
                if claim(state.ds, pod) is Claim.RELEASE:
                    self._adoption.request_scan(state, pod.uid)
            case OrphanSeen(orphan):
                self._orphan_seen(orphan)
            case DaemonSetGone(state):
                self._forget(state)

    def _schedule(self, state: DaemonSetState, urgency: Urgency) -> None:
        self._queue.add_changed(state.key, urgency, state.changed, updating=state.updating)

    def _orphan_seen(self, orphan: Pod | ControllerRevision) -> None:
        for state in self._informers.states.values():
            if state.ds.namespace != orphan.metadata.namespace:
                continue
            if isinstance(orphan, Pod):
                adopt = claim(state.ds, orphan) is Claim.ADOPT
            else:
                adopt = claim_revision(state.ds, orphan) is Claim.ADOPT
            if adopt:
                self._adoption.request_scan(state, orphan.metadata.uid)
                self._queue.add(state.key)

    def _unlabelled_seen(self, state: DaemonSetState, pod: Pod) -> None:
        """A pod without a revision hash: an orphan to adopt, or an own pod to be labelled again."""
        if claim(state.ds, pod) in (Claim.ADOPT, Claim.OWN):
            self._adoption.request_scan(state, pod.uid)
            self._queue.add(state.key)

    def _forget(self, state: DaemonSetState) -> None:
        self._queue.discard(state.key)
        self._statuses.forget(state)
        self._history.forget(state)
        self._adoption.forget(state)
        self._orphans.forget(state)
        self._prepull.forget(state)
        self._dry_runs.forget(state)
        self._rooms.forget(state)
        self._choices.pop(state.key, None)
        self._failures.pop(state.key, None)
        self._missing.forget(state.key)
        self._reporter.daemonset_gone(state)
