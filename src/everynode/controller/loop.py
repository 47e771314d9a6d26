"""The loop: one workload at a time is looked at, decided, and its writes handed on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Protocol

import msgspec

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import ControllerRevision, Pod
from everynode.clock import Clock
from everynode.controller.adoption import Adoption
from everynode.controller.apply import Applier
from everynode.controller.history import History
from everynode.controller.observe import World
from everynode.controller.prepull import PrePull
from everynode.controller.queue import SOON, Queue
from everynode.controller.status import Statuses
from everynode.controller.workload import Workload
from everynode.controller.writes import Write
from everynode.decide.actions import Notice, PodAction
from everynode.decide.claim import Claim, claim, claim_revision
from everynode.decide.ledger import Ledger
from everynode.decide.plan import make_plan
from everynode.decide.revisions import Choice, relabel

_LONGEST_STUMBLE: Final = 300.0


class Teller(Protocol):
    """Whoever measures the loop."""

    def looked(self, workload: Workload, seconds: float) -> None:
        """A workload was looked at; it took so long."""
        ...

    def selects_all(self, workload: Workload) -> None:
        """The selector is empty and would take every pod of the namespace."""
        ...

    def noticed(self, workload: Workload, notice: Notice) -> None:
        """Something is to be said of the DaemonSet itself."""
        ...

    def status_decided(self, workload: Workload, status: DaemonSetStatus) -> None:
        """The rollout stands like this now."""
        ...

    def stumbled(self, workload: Workload, error: Exception) -> None:
        """Looking at the DaemonSet failed for a reason that nobody has thought of."""
        ...

    def gone(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        ...


@dataclass(slots=True)
class _Stumble:
    """Looks at one DaemonSet that failed, one after the other."""

    count: int = 0
    again_at: float = 0.0


class Loop:
    """Looks at one workload after the other for as long as we lead."""

    def __init__(
        self,
        clock: Clock,
        *,
        world: World,
        queue: Queue,
        applier: Applier,
        history: History,
        statuses: Statuses,
        adoption: Adoption,
        prepull: PrePull,
        teller: Teller,
    ) -> None:
        self._clock = clock
        self._world = world
        self._queue = queue
        self._applier = applier
        self._history = history
        self._statuses = statuses
        self._adoption = adoption
        self._prepull = prepull
        self._teller = teller
        self._choices: dict[str, Choice] = {}
        self._stumbles: dict[str, _Stumble] = {}
        self._tasks: asyncio.TaskGroup | None = None
        world.changed = self._changed
        world.moved = self._moved
        world.updated = statuses.observed
        world.vanished = self._vanished
        world.orphaned = self._orphaned
        world.relabelled = self._relabelled

    async def run(self) -> None:
        """Look at workloads until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            for key in sorted(self._world.workloads):
                self._queue.add(key)
            self._tasks.create_task(self._applier.run())
            while True:
                key = await self._queue.get()
                workload = self._world.workloads.get(key)
                if workload is not None:
                    began = self._clock.monotonic()
                    self._try_look(workload, self._clock.now())
                    self._teller.looked(workload, self._clock.monotonic() - began)
                await self._clock.sleep(0)

    # --- One look --------------------------------------------------------------------------

    def _try_look(self, workload: Workload, now: float) -> None:
        """Look at a workload; one that we stumble over is left for a while, the others go on."""
        stumble = self._stumbles.get(workload.key)
        if stumble is not None and now < stumble.again_at:
            self._queue.add_at(workload.key, stumble.again_at)
            return
        try:
            self._look(workload, now)
            self._stumbles.pop(workload.key, None)
        except Exception as error:
            stumble = self._stumbles.setdefault(workload.key, _Stumble())
            stumble.count += 1
            stumble.again_at = now + min(2.0 ** min(stumble.count, 20), _LONGEST_STUMBLE)
            workload.ledger, workload.replan = None, True  # whatever was half done is done anew
            self._queue.add_at(workload.key, stumble.again_at)
            self._teller.stumbled(workload, error)

    def _look(self, workload: Workload, now: float) -> None:
        if workload.ds.metadata.deletion_timestamp is not None:
            return
        if not workload.ds.selector.match_labels and not workload.ds.selector.match_expressions:
            self._teller.selects_all(workload)
            return
        truce = self._statuses.truce_until(workload)
        if truce > now:
            self._queue.add_at(workload.key, truce)
            return
        if self._adoption.due(workload, now):
            self._spawn(self._adoption.scan(workload))
        # At every look: the queue has forgotten what it was asked for before.
        wake_at = self._adoption.next_scan(workload)
        if self._adoption.done(workload) and (not workload.replan or self._replan(workload, now)):
            wake_at = min(wake_at, self._decide(workload, now))
        self._queue.add_at(workload.key, wake_at)

    def _replan(self, workload: Workload, now: float) -> bool:
        """Make the plan anew; False while the revisions have to be written first."""
        if workload.revising:
            return False
        choice = self._history.choose(workload)
        if choice.actions:
            due_at = self._history.due_at(workload, choice.actions)
            if due_at > now:
                self._queue.add_at(workload.key, due_at)
                return False
            workload.revising = True
            self._spawn(self._history.write(workload, choice.actions))
            return False
        revisions, faults = self._history.revisions(workload)
        ds = msgspec.structs.replace(workload.ds, faults=(*workload.ds.faults, *faults))
        plan = make_plan(ds, choice.target, revisions, choice.from_hash)
        self._choices[workload.key] = choice
        workload.replan = False
        if workload.ledger is None:
            workload.ledger = Ledger(plan)
            workload.observe_everything()
        else:
            workload.ledger.set_plan(plan)
        if choice.duplicates:
            patches = (relabel(pod, choice) for pod in workload.pods())
            self._carry_out(workload, [patch for patch in patches if patch is not None], now)
        return True

    def _decide(self, workload: Workload, now: float) -> float:
        """Have done what there is to do; when to look again if nothing happens before."""
        assert workload.ledger is not None
        workload.refresh(self._world.pods.version, now)
        for node, write in workload.overdue(now):
            self._spawn(self._settle(workload, node, write))
        observed = workload.ds.status
        collisions = self._choices[workload.key].collision_count
        if (collisions or 0) > (observed.collision_count or 0):
            observed = msgspec.structs.replace(observed, collision_count=collisions)
        decision = workload.ledger.decide(now, observed, create_limit=workload.create_limit)
        self._carry_out(workload, decision.actions, now)
        due_at = self._write_status(workload, decision.status, now)
        for notice in decision.notices:
            self._teller.noticed(workload, notice)
        prune_at = self._prune(workload, now)
        self._pull_ahead(workload)
        times = (due_at, decision.wake_at, workload.settle_at, workload.quiet_until, prune_at)
        return min([at for at in times if at is not None], default=inf)

    def _carry_out(self, workload: Workload, actions: Sequence[PodAction], now: float) -> None:
        for action in actions:
            if action.node not in workload.writes:
                self._applier.put(workload, workload.begin(action, now))

    def _write_status(
        self, workload: Workload, status: DaemonSetStatus, now: float
    ) -> float | None:
        """Write the status if it is time; when it will be if it is not yet."""
        due_at = self._statuses.due_at(workload, status)
        if due_at is not None and due_at > now:
            return due_at
        self._teller.status_decided(workload, status)
        if due_at is not None:
            self._spawn(self._statuses.write(workload, status))
        return None

    def _prune(self, workload: Workload, now: float) -> float | None:
        """Delete the revisions that nobody needs; when that may be done if not yet."""
        choice = self._choices.get(workload.key)
        if choice is None or workload.revising:
            return None
        spare = self._history.spare(workload, choice.target)
        if not spare:
            return None
        due_at = self._history.due_at(workload, spare)
        if due_at > now:
            return due_at
        workload.revising = True
        self._spawn(self._history.write(workload, spare))
        return None

    def _pull_ahead(self, workload: Workload) -> None:
        if not self._prepull.wanted(workload):
            return
        revisions, _ = self._history.revisions(workload)
        step = self._prepull.step(workload, self._choices[workload.key].target, revisions)
        if step is not None:
            self._spawn(step)

    async def _settle(self, workload: Workload, node: str, write: Write) -> None:
        await self._applier.settle(workload, node, write)
        self._queue.add(workload.key)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        self._tasks.create_task(work)

    # --- What the world tells us -----------------------------------------------------------

    def _changed(self, workload: Workload) -> None:
        """At rest somebody goes on at once; of many that are on their way, all who can together."""
        ledger = workload.ledger
        add = self._queue.add_shortly if ledger is not None and ledger.moving else self._queue.add
        add(workload.key)

    def _moved(self, workload: Workload) -> None:
        now = self._clock.now()
        workload.quieten(now)
        self._queue.add_at(workload.key, now + SOON)

    def _vanished(self, workload: Workload) -> None:
        self._queue.discard(workload.key)
        self._statuses.forget(workload)
        self._history.forget(workload)
        self._adoption.forget(workload)
        self._prepull.forget(workload)
        self._choices.pop(workload.key, None)
        self._stumbles.pop(workload.key, None)
        self._teller.gone(workload)

    def _relabelled(self, pod: Pod, workload: Workload) -> None:
        if claim(workload.ds, pod) is Claim.RELEASE:
            self._adoption.soon(workload)

    def _orphaned(self, orphan: Pod | ControllerRevision) -> None:
        for workload in self._world.workloads.values():
            if workload.ds.namespace != orphan.metadata.namespace:
                continue
            if isinstance(orphan, Pod):
                wanted = claim(workload.ds, orphan) is Claim.ADOPT
            else:
                wanted = claim_revision(workload.ds, orphan) is Claim.ADOPT
            if wanted:
                self._adoption.soon(workload)
                self._queue.add(workload.key)
