"""The fleet of one DaemonSet: what to do next, in time proportional to what has changed.

A ledger holds the assessment of every node, their sums, and the nodes that wait for something in
written order. It remembers nothing that the views do not say: one built anew from the same views
decides the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from everynode.api.amount import scale
from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import Condition
from everynode.decide.actions import Notice, PodAction
from everynode.decide.assess import assess, survey
from everynode.decide.assessment import Assessment, Profile, Queue, Survey
from everynode.decide.books import Books
from everynode.decide.budget import (
    Limits,
    Tally,
    Unreachable,
    count,
    cure_room,
    is_outage,
    resolve,
    take_room,
)
from everynode.decide.conditions import EXCEPTIONAL, Picture, describe, write_conditions
from everynode.decide.plan import Plan
from everynode.decide.scope import Scope
from everynode.decide.status import write_status
from everynode.decide.steps import as_write, build
from everynode.decide.surge import surge_room
from everynode.decide.view import NodeView


class Decision(msgspec.Struct, frozen=True):
    """What to do now, what to say, and when to look again if nothing happens before."""

    actions: tuple[PodAction, ...]
    status: DaemonSetStatus
    wake_at: float | None = None
    notices: tuple[Notice, ...] = ()


class Ledger:
    """The assessments of one DaemonSet's nodes, kept up to date node by node."""

    def __init__(self, plan: Plan, views: Iterable[NodeView] = ()) -> None:
        self._views: dict[str, NodeView] = {}
        self._start(plan)
        for view in views:
            self.observe(view)

    def _start(self, plan: Plan) -> None:
        self.plan = plan
        self._scope = Scope(plan.ds.strategy)
        self._assessments: dict[str, Assessment] = {}
        self._books = Books()
        self._changed: dict[str, None] = dict.fromkeys(self._views)
        self._stir()

    def _stir(self) -> None:
        """Forget what holds only as long as no assessment changes."""
        self._vain: set[int | None] = set()  # limits of creates with which there is nothing to do
        self._said: tuple[Condition, ...] | None = None  # by the conditions
        self._last: Decision | None = None  # if it left everything as it was

    def set_plan(self, plan: Plan) -> None:
        """Go by another plan; every node is judged anew unless the plan says the same."""
        if plan != self.plan:
            self._start(plan)

    def observe(self, view: NodeView) -> None:
        """Take in how one node looks now; a look that shows nothing new costs nothing."""
        if self._views.get(view.name) == view:
            return
        self._views[view.name] = view
        self._changed[view.name] = None

    def forget(self, node: str) -> None:
        """The node is gone, and none of our pods points at it any more."""
        self._views.pop(node, None)
        self._changed.pop(node, None)
        self._scope.drop(node)
        self._stir()
        before = self._assessments.pop(node, None)
        if before is not None:
            self._books.remove(before)

    def explain(self, node: str) -> Assessment | None:
        """What was said of a node at the last decision."""
        return self._assessments.get(node)

    def assessments(self) -> Iterator[Assessment]:
        """What was said of every node at the last decision, by name."""
        return (self._assessments[name] for name in sorted(self._assessments))

    @property
    def sums(self) -> Profile:
        """The fleet in numbers."""
        return self._books.sums

    @property
    def moving(self) -> int:
        """How many nodes were on their way at the last decision."""
        return self._books.moving

    def decide(
        self, now: float, status: DaemonSetStatus, *, create_limit: int | None = None
    ) -> Decision:
        """What to do now. The actions are taken as under way until their nodes are observed again.

        `create_limit` bounds the creates that are under way at a time, for a slow start after
        refusals.
        """
        self._settle(now)
        if self.plan.idle is not None:
            return Decision((), status, self._books.wake_at, self.plan.idle)
        actions = self._serve(now, create_limit)
        if self._last is not None and self._last.status is status:
            return self._last
        if self._said is None:
            self._said = describe(self._picture())
        conditions = write_conditions(self._said, status.conditions, now)
        written = write_status(self.plan, self.sums, status, conditions)
        notices = _notices(status.conditions, conditions)
        decision = Decision(actions, written, self._books.wake_at, notices)
        if written is status and not actions:
            self._last = decision
        return decision

    def _serve(self, now: float, create_limit: int | None) -> tuple[PodAction, ...]:
        """Grant what can be granted; where nothing could, nothing can until something changes."""
        if create_limit in self._vain or not self._books.queued:
            return ()
        actions = _Round(self, now, create_limit).run()
        if not actions:
            self._vain.add(create_limit)
        return tuple(actions)

    def _picture(self) -> Picture:
        books, plan = self._books, self.plan
        sums = books.sums
        return Picture(
            desired=sums.wanted,
            updated=sums.updated,
            available=sums.available,
            served=sums.served,
            max_unavailable=resolve(plan.ds.strategy, sums.wanted).max_unavailable,
            held=sums.held,
            to_come=sums.to_come,
            moving=books.moving,
            waiting=books.stuck,
            paused=plan.rolling and plan.ds.strategy.paused,
            on_delete=not plan.rolling,
            clashing=sums.clashing,
            faults=plan.faults,
        )

    # --- Keeping up --------------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        """Judge again every node that changed, whose time has come, or that the scope moved."""
        self._changed.update(dict.fromkeys(self._books.ring(now)))
        if not self._changed:
            return
        self._stir()
        changed, self._changed = self._changed, {}
        surveys: dict[str, Survey | None] = {name: self._survey(name) for name in changed}
        for name in self._scope.settle():
            if name not in surveys:
                surveys[name] = None
        if not self._assessments:
            self._assessments = {name: self._assess(name, surveys[name], now) for name in surveys}
            self._books.add_all(self._assessments.values())
            return
        for name, found in surveys.items():
            before = self._assessments.get(name)
            made = self._assessments[name] = self._assess(name, found, now)
            if before is None:
                self._books.add(made)
            else:
                self._books.replace(before, made)

    def _survey(self, name: str) -> Survey:
        view = self._views[name]
        found = survey(self.plan, view)
        if view.node is None:
            self._scope.drop(name)
        else:
            self._scope.put(
                name,
                holds_target=found.holds_target,
                wanted=found.eligibility.should_run,
                selected=found.selected,
            )
        return found

    def _assess(self, name: str, found: Survey | None, now: float) -> Assessment:
        in_scope = name in self._scope
        return assess(
            self.plan,
            self._views[name],
            in_scope=in_scope,
            released=in_scope or self._scope.released(name),
            now=now,
            surveyed=found,
        )

    def _grant(self, name: str, now: float) -> list[PodAction]:
        """Do what the node wants; from now on it counts as written to."""
        view = self._views[name]
        actions = [
            action
            for step in self._assessments[name].steps
            for action in build(self.plan, view, step, now)
        ]
        if actions:
            writes = (*view.writes, *(as_write(action) for action in actions))
            self.observe(msgspec.structs.replace(view, writes=writes))
        return actions


class _Round:
    """One decision: who waits is served queue by queue, each from sums that are up to date."""

    def __init__(self, ledger: Ledger, now: float, create_limit: int | None) -> None:
        self.ledger = ledger
        self.now = now
        plan, sums = ledger.plan, ledger.sums
        self.limits: Limits = resolve(plan.ds.strategy, sums.wanted)
        # A burst too small for one node would stop everything: one at a time at least.
        burst = max(1, scale(plan.ds.burst, sums.wanted, round_up=False))
        creates = burst if create_limit is None else min(burst, create_limit)
        self.creates = max(0, creates - sums.creating)
        self.changes = max(0, burst - sums.changing)
        self.actions: list[PodAction] = []

    def run(self) -> list[PodAction]:
        """New nodes first, then what needs no budget, then the rollout."""
        self._create(Queue.CREATE, self.creates)
        self._change(Queue.WORK, self.changes)
        if self.ledger.plan.surging:
            self._cure(self.limits.max_surge)
            self._surge()
        elif self.ledger.plan.updating:
            self._cure(self.limits.max_unavailable)
            self._take(self.limits.max_unavailable)
        return self.actions

    def _cure(self, limit: int) -> None:
        room = cure_room(limit, self._tally(limit))
        if room >= 0:
            self._change(Queue.CURE_FREE, self.changes, last_first=True)
        self._change(Queue.CURE, room, last_first=True)

    def _take(self, limit: int) -> None:
        room = take_room(limit, self._tally(limit))
        if room >= 0:
            self._change(Queue.TAKE_FREE, self.changes, last_first=True)
        self._change(Queue.TAKE, room, last_first=True)

    def _surge(self) -> None:
        limit = self.limits.max_surge
        self._create(Queue.BESIDE, self._surge_room(limit))
        self._create(Queue.SURGE, self._surge_room(limit), last_first=True)

    def _surge_room(self, limit: int) -> int:
        sums = self.ledger.sums
        outage = is_outage(sums.lost, limit=limit, desired=sums.wanted)
        return surge_room(limit, sums.doubled, sums.lost_doubled, outage=outage)

    def _tally(self, limit: int) -> Tally:
        sums = self.ledger.sums
        return count(
            Tally(down=sums.down, under_way=sums.under_way, proven=sums.proven),
            Unreachable(
                nodes=sums.lost,
                down=sums.lost_down,
                under_way=sums.lost_under_way,
                moved=sums.lost_moved,
            ),
            limit=limit,
            desired=sums.wanted,
        )

    def _create(self, queue: Queue, room: int, *, last_first: bool = False) -> None:
        self.creates -= self._serve(queue, min(room, self.creates), last_first)

    def _change(self, queue: Queue, room: int, *, last_first: bool = False) -> None:
        self.changes -= self._serve(queue, min(room, self.changes), last_first)

    def _serve(self, queue: Queue, room: int, last_first: bool) -> int:
        """Grant the first nodes of a queue their wish; how many actions that took."""
        waiting = self.ledger._books.queues[queue]
        if room <= 0 or not waiting:
            return 0
        # A slice would first count through the whole list.
        names = list(islice(reversed(waiting) if last_first else waiting, room))
        made = [action for name in names for action in self.ledger._grant(name, self.now)]
        self.actions += made
        self.ledger._settle(self.now)
        return len(made)


def _notices(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Notice, ...]:
    """Events for trouble with the DaemonSet itself, when it is first found."""
    known = {each.type for each in before if each.status == "True"}
    return tuple(
        Notice("Warning", each.type, each.message)
        for each in after
        if each.type in EXCEPTIONAL and each.status == "True" and each.type not in known
    )
