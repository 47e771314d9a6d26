"""Ledger: decides the next actions of one DaemonSet, in time proportional to what changed.

It holds the assessment of every node, their totals, and ordered queues of the waiting nodes. It is
a cache: a ledger that is built from scratch from the same views makes the same decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from everynode.api.daemonset import DaemonSetStatus, FieldError, Flavour
from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import Condition
from everynode.decide.actions import PodAction
from everynode.decide.decision import Decision, FailedNode
from everynode.decide.fleet.budget import (
    Limits,
    budget_counts,
    is_outage,
    replace_unready_room,
    resolve_limits,
    update_ready_room,
)
from everynode.decide.fleet.conditions import (
    COMPLETE,
    FleetSummary,
    StallCheck,
    add_stalled,
    build_conditions,
    describe_fleet,
    merge_conditions,
    stall_check,
    waiting_nodes,
)
from everynode.decide.fleet.scope import Scope
from everynode.decide.fleet.status import build_status, new_notices
from everynode.decide.fleet.surge import surge_room
from everynode.decide.fleet.totals import Totals
from everynode.decide.fleet.verification import (
    UNASKED,
    UPDATE_QUEUES,
    Verdict,
    Verification,
    verify_target,
)
from everynode.decide.node.assessment import Assessment, NodeCounts, Queue, TargetFacts, earliest
from everynode.decide.node.eligibility import Eligibility
from everynode.decide.node.evaluate import evaluate_node, skip_failed_node, target_facts
from everynode.decide.node.reasons import INSUFFICIENT_RESOURCES
from everynode.decide.node.steps import StepKind, build_actions, to_own_write
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView

# For a node whose target facts could not be computed: its pods stay as they are.
_NOT_EVALUATED: Final = Eligibility(should_run=False, should_continue=True, reason="left alone")


@dataclass(slots=True)
class _Round:
    """One pass over the queues: how many creates and changes are left, and the actions so far."""

    now: float
    limits: Limits
    creates: int
    changes: int
    actions: list[PodAction] = field(default_factory=list)
    room_checks: list[str] = field(default_factory=list)


class Ledger:
    """The assessments of one DaemonSet's nodes, kept up to date node by node."""

    def __init__(self, plan: Plan, views: Iterable[NodeView] = ()) -> None:
        self._views: dict[str, NodeView] = {}
        self._failed_nodes: list[FailedNode] = []
        self._troubles: tuple[FieldError, ...] = ()
        self._verdict = UNASKED
        self._checks_rooms = False
        self._start(plan)
        for view in views:
            self.observe(view)

    def _start(self, plan: Plan) -> None:
        self.plan = plan
        self._scope = Scope(plan.ds.strategy)
        self._assessments: dict[str, Assessment] = {}
        self._totals = Totals()
        self._changed: dict[str, None] = dict.fromkeys(self._views)
        self._invalidate()

    def _invalidate(self) -> None:
        """Drop the caches that are valid only while no assessment changes."""
        self._exhausted_limits: set[int | None] = set()  # create limits that allow no action
        self._conditions_cache: tuple[Condition, ...] | None = None
        self._stall_check: StallCheck | None = None  # of the cached conditions
        self._unchanged_decision: Decision | None = None  # the last one, if it changed nothing
        self._verification: Verification | None = None  # the dry run that was asked for last
        self._room_checks: tuple[str, ...] = ()  # that were asked for last

    def set_plan(self, plan: Plan) -> None:
        """Use another plan; every node is evaluated again unless the plans are equal."""
        if plan != self.plan:
            self._start(plan)

    def observe(self, view: NodeView) -> None:
        """Take in the view of one node; an equal view costs nothing."""
        if self._views.get(view.name) == view:
            return
        self._views[view.name] = view
        self._changed[view.name] = None

    def forget(self, node: str) -> None:
        """Drop a node that does not exist and has none of our pods."""
        self._views.pop(node, None)
        self._changed.pop(node, None)
        self._scope.remove(node)
        self._invalidate()
        before = self._assessments.pop(node, None)
        if before is not None:
            self._totals.remove(before)

    def assess(self, now: float) -> None:
        """Evaluate every node that changed, without taking an action; for readers."""
        self._refresh(now)

    def assessments(self) -> Iterator[Assessment]:
        """Return the assessments of the last evaluation or decision, by node name."""
        return (self._assessments[name] for name in sorted(self._assessments))

    def is_done(self, node: str) -> bool | None:
        """Whether its pod was updated and available at the last decision; None without the node."""
        found = self._assessments.get(node)
        return None if found is None else bool(found.counts.done)

    def take_finished(self) -> list[str]:
        """Return the nodes that became done, or are gone, since the last call."""
        return self._totals.take_finished()

    @property
    def sums(self) -> NodeCounts:
        """The counts of all nodes, added up."""
        return self._totals.sums

    @property
    def progressing(self) -> int:
        """How many nodes were progressing at the last decision."""
        return self._totals.progressing

    def missing(self, now: float) -> list[str]:
        """The nodes that lack a pod and may get one now, by name."""
        self._refresh(now)
        return list(self._totals.queues[Queue.CREATE])

    def decide(
        self,
        now: float,
        status: DaemonSetStatus,
        *,
        create_limit: int | None = None,
        verdict: Verdict = UNASKED,
        check_rooms: bool = False,
        heal_only: frozenset[str] | None = None,
        troubles: tuple[FieldError, ...] = (),
    ) -> Decision:
        """Decide what to do now. Actions count as pending until their nodes are observed again.

        `create_limit` bounds the creates that are pending at a time, for a slow start after the API
        server refused some. `verdict` is the result of the last dry run. With `check_rooms` no pod
        is taken on a node whose room is to be observed first. With `heal_only` nothing
        is done but to create the missing pods of these nodes, and to finish on any node what was
        begun (R9). `troubles` are writes beside those of the nodes that were refused, for the
        condition.
        """
        given = verdict, troubles, check_rooms
        if given != (self._verdict, self._troubles, self._checks_rooms):
            self._verdict, self._troubles, self._checks_rooms = given
            self._invalidate()
        self._refresh(now)
        if heal_only is None:
            actions = self._serve_queues(now, create_limit)
        else:
            actions = self._heal(now, create_limit, heal_only)
        last = self._unchanged_decision
        if last is not None and last.status is status and not self._stalls(last, now):
            return last
        verification = self._wanted_verification(now)
        conditions, stalls_at = self._conditions(status, now)
        written = build_status(self.plan, self.sums, status, conditions)
        notices = new_notices(status.conditions, conditions)
        failed_nodes = self._take_failed_nodes()
        wake_at = earliest(now, self._totals.wake_at, stalls_at)
        is_complete = (COMPLETE, "True") in [(each.type, each.status) for each in conditions]
        complete = written.desired > 0 and is_complete
        decision = Decision(
            actions,
            written,
            wake_at,
            notices,
            failed_nodes,
            complete,
            verification,
            self._room_checks,
        )
        if written is status and not actions and not failed_nodes:
            self._unchanged_decision = decision
        return decision

    def _stalls(self, last: Decision, now: float) -> bool:
        return self._stall_check is not None and last.wake_at is not None and last.wake_at <= now

    def _conditions(
        self, status: DaemonSetStatus, now: float
    ) -> tuple[tuple[Condition, ...], float | None]:
        """Return the conditions to store, and when they change without an event."""
        if self._conditions_cache is None:
            summary = self.summary()
            text = describe_fleet(summary)
            self._conditions_cache = build_conditions(summary, text)
            if summary.advanced:
                self._stall_check = stall_check(summary, text)
        stored = merge_conditions(self._conditions_cache, status.conditions, now)
        if self.plan.ds.flavour is Flavour.NATIVE:
            return stored, None
        return add_stalled(stored, self._stall_check, now)

    def _take_failed_nodes(self) -> tuple[FailedNode, ...]:
        if not self._failed_nodes:
            return ()  # unless there is a defect in the evaluation
        failed, self._failed_nodes = tuple(self._failed_nodes), []
        return failed

    def summary(self) -> FleetSummary:
        """Return the counts of the last decision; its cost does not depend on the nodes."""
        totals, plan = self._totals, self.plan
        sums = totals.sums
        limits = resolve_limits(plan.ds.strategy, sums.desired)
        limit = limits.max_surge if plan.surging else limits.max_unavailable
        silent = sums.silent_held + sums.silent_unreached
        unverified = self._verification is not None
        refusal = self._verdict.refusal_of(plan.target_hash) if unverified else ""
        # These responses come without an event. A node that had no room is merely observed again.
        verifying = unverified and not refusal
        codes = {self._assessments[name].reason.code for name in self._room_checks}
        checking = bool(codes - {INSUFFICIENT_RESOURCES})
        return FleetSummary(
            desired=sums.desired,
            done=sums.done,
            available_any=sums.available_any,
            max_unavailable=limits.max_unavailable,
            held=sums.held,
            not_started=sums.not_started,
            progressing=totals.progressing + (verifying or checking),
            moving=sums.moving + (verifying or checking),
            as_declared=sums.as_declared,
            silent_held=sums.silent_held,
            silent_unreached=sums.silent_unreached,
            silent_excused=not is_outage(silent, limit=limit, desired=sums.desired),
            waiting=waiting_nodes(totals.waiting, updating=plan.rolling and sums.not_started > 0),
            paused=plan.rolling and plan.ds.strategy.paused,
            on_delete=not plan.rolling,
            port_conflict=sums.port_conflict,
            removing=sums.removing,
            reverted=plan.reverts,
            faults=(*plan.faults, *self._troubles),
            refusal=refusal,
            min_ready_seconds=plan.min_ready_seconds,
            advanced=plan.ds.flavour is Flavour.ADVANCED,
        )

    # --- Evaluating changed nodes ------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Evaluate every node that changed, is due, or entered or left the scope."""
        self._changed.update(dict.fromkeys(self._totals.pop_due(now)))
        if not self._changed:
            return
        self._invalidate()
        changed, self._changed = self._changed, {}
        facts: dict[str, TargetFacts | None] = {name: self._target_facts(name) for name in changed}
        for name in self._scope.rebalance():
            if name not in facts:
                facts[name] = None
        if not self._assessments:
            self._assessments = {name: self._evaluate(name, facts[name], now) for name in facts}
            self._totals.add_all(self._assessments.values())
            return
        for name, found in facts.items():
            before = self._assessments.get(name)
            after = self._assessments[name] = self._evaluate(name, found, now)
            if before is None:
                self._totals.add(after)
            else:
                self._totals.replace(before, after)

    def _target_facts(self, name: str) -> TargetFacts:
        view = self._views[name]
        try:
            found = target_facts(self.plan, view)
        except Exception as error:
            self._failed_nodes.append(FailedNode(name, error))
            found = TargetFacts(holds_target=False, selected=False, eligibility=_NOT_EVALUATED)
        if view.node is None:
            self._scope.remove(name)
        else:
            self._scope.update(
                name,
                holds_target=found.holds_target,
                desired=found.eligibility.should_run,
                selected=found.selected,
                occupied=bool(view.pods),
            )
        return found

    def _evaluate(self, name: str, found: TargetFacts | None, now: float) -> Assessment:
        in_scope = name in self._scope
        try:
            return evaluate_node(
                self.plan,
                self._views[name],
                in_scope=in_scope,
                released=in_scope or self._scope.released(name),
                now=now,
                facts=found,
            )
        except Exception as error:
            return self._skip_failed_node(name, found, error)

    def _skip_failed_node(
        self, name: str, found: TargetFacts | None, error: Exception
    ) -> Assessment:
        """Record the error and skip the node: one failing node must not stop the others."""
        self._failed_nodes.append(FailedNode(name, error))
        known = found or self._assessments.get(name)
        eligibility = known.eligibility if known is not None else _NOT_EVALUATED
        return skip_failed_node(self._views[name], eligibility, error, in_scope=name in self._scope)

    # --- Serving the queues ------------------------------------------------------------------

    def _serve_queues(self, now: float, create_limit: int | None) -> tuple[PodAction, ...]:
        """Take the actions that limits allow: missing pods, then maintenance, then the rollout.

        The totals include the actions that earlier queues took. A create limit that allowed no
        action is remembered until an assessment changes.
        """
        if create_limit in self._exhausted_limits or not self._totals.queued:
            return ()
        turn = self._start_round(now, create_limit)
        self._create(turn, Queue.CREATE, turn.creates)
        self._change(turn, Queue.MAINTAIN, turn.changes)
        accepted = self._is_target_accepted()
        if self.plan.surging:
            if accepted:
                self._replace_unready(turn, turn.limits.max_surge)
            self._surge(turn, accepted=accepted)
        elif self.plan.updating and accepted:
            self._change(turn, Queue.RECREATE_NO_BUDGET, turn.changes, last_first=True)
            self._replace_unready(turn, turn.limits.max_unavailable)
            self._update_ready(turn, turn.limits.max_unavailable)
        self._withdraw(turn)
        self._room_checks = tuple(turn.room_checks)
        if not turn.actions:
            self._exhausted_limits.add(create_limit)
        return tuple(turn.actions)

    def _heal(
        self, now: float, create_limit: int | None, nodes: frozenset[str]
    ) -> tuple[PodAction, ...]:
        """Take the creates of these nodes, and gates and steps in place that were begun."""
        turn = self._start_round(now, create_limit)
        queues = self._totals.queues
        lacking = [name for name in queues[Queue.CREATE] if name in nodes]
        begun = [name for name in queues[Queue.MAINTAIN] if self._only_finishes(name)]
        for name in (*lacking[: turn.creates], *begun[: turn.changes]):
            turn.actions += self._take_actions(name, now)
        self._refresh(now)
        return tuple(turn.actions)

    def _only_finishes(self, name: str) -> bool:
        return all(step.kind is StepKind.MAINTAIN for step in self._assessments[name].steps)

    def _start_round(self, now: float, create_limit: int | None) -> _Round:
        sums = self.sums
        # A burst that rounds down to 0 would stop everything, so it is at least 1.
        burst = max(1, scaled_value(self.plan.ds.burst, sums.desired, round_up=False))
        creates = burst if create_limit is None else min(burst, create_limit)
        return _Round(
            now,
            resolve_limits(self.plan.ds.strategy, sums.desired),
            creates=max(0, creates - sums.creating),
            changes=max(0, burst - sums.changing),
        )

    def _replace_unready(self, turn: _Round, limit: int) -> None:
        room = replace_unready_room(limit, budget_counts(self.sums, limit))
        if room >= 0:
            self._change(turn, Queue.REPLACE_UNREADY_NO_BUDGET, turn.changes, last_first=True)
        self._change(turn, Queue.REPLACE_UNREADY, room, last_first=True)

    def _update_ready(self, turn: _Round, limit: int) -> None:
        room = update_ready_room(limit, budget_counts(self.sums, limit))
        if room >= 0:
            self._change(turn, Queue.UPDATE_READY_NO_BUDGET, turn.changes, last_first=True)
        self._change(turn, Queue.UPDATE_READY, room, last_first=True)

    def _withdraw(self, turn: _Round) -> None:
        """Remove pods whose toleration a target withdraws that works where it should run."""
        sums, limits = self.sums, turn.limits
        if sums.target_proven or sums.desired <= sums.held:
            limit = limits.max_surge if self.plan.surging else limits.max_unavailable
            room = update_ready_room(limit, budget_counts(self.sums, limit))
            self._change(turn, Queue.WITHDRAW, room, last_first=True)

    def _surge(self, turn: _Round, *, accepted: bool) -> None:
        limit = turn.limits.max_surge
        if self.sums.target_proven:
            self._change(turn, Queue.END_SURGE, turn.changes, last_first=True)
        self._create(turn, Queue.CREATE_BESIDE_TERMINATING, self._surge_room(limit))
        if accepted:
            self._create(turn, Queue.SURGE, self._surge_room(limit), last_first=True)

    def _surge_room(self, limit: int) -> int:
        sums = self.sums
        outage = is_outage(sums.unreachable, limit=limit, desired=sums.desired)
        return surge_room(limit, sums.two_pods, sums.unreachable_two_pods, outage=outage)

    def _is_target_accepted(self) -> bool:
        """Whether the API server accepts the target's pods: a dry run or an available pod says so.

        Without a verdict nothing is taken; a pod that is missing is created all the same.
        """
        return self._verdict.accepts(self.plan.target_hash) or self.sums.target_available > 0

    def _wanted_verification(self, now: float) -> Verification | None:
        """Return the dry run that has to succeed before the first waiting pod is taken."""
        if self._verification is not None or self._is_target_accepted():
            return self._verification
        name = next(
            (self._totals.queues[q][-1] for q in UPDATE_QUEUES if self._totals.queues[q]), ""
        )
        if name:
            old = self._assessments[name].steps[0].pod
            try:
                self._verification = verify_target(self.plan, self._views[name], old, now)
            except Exception as error:
                self._failed_nodes.append(FailedNode(name, error))
        return self._verification

    def _create(self, turn: _Round, queue: Queue, room: int, *, last_first: bool = False) -> None:
        turn.creates -= self._serve(turn, queue, min(room, turn.creates), last_first)

    def _change(self, turn: _Round, queue: Queue, room: int, *, last_first: bool = False) -> None:
        turn.changes -= self._serve(turn, queue, min(room, turn.changes), last_first)

    def _serve(self, turn: _Round, queue: Queue, room: int, last_first: bool) -> int:
        """Take the actions of the first nodes of a queue; return how many there were.

        Nodes whose room is not known keep their place until it is (R4).
        """
        names = self._totals.first(queue, room, last_first=last_first) if room > 0 else ()
        if not names:
            return 0
        if self._checks_rooms:
            unchecked = [name for name in names if self._assessments[name].steps[0].check_room]
            turn.room_checks += unchecked
            names = [name for name in names if name not in unchecked]
        actions = [action for name in names for action in self._take_actions(name, turn.now)]
        turn.actions += actions
        self._refresh(turn.now)
        return len(actions)

    def _take_actions(self, name: str, now: float) -> list[PodAction]:
        """Build the actions of a node's steps and record them as own writes of the node."""
        view, before = self._views[name], self._assessments[name]
        try:
            actions = [
                action
                for step in before.steps
                for action in build_actions(self.plan, view, step, now)
            ]
        except Exception as error:
            facts = TargetFacts(holds_target=False, selected=False, eligibility=before.eligibility)
            self._assessments[name] = self._skip_failed_node(name, facts, error)
            self._totals.replace(before, self._assessments[name])
            self._invalidate()
            return []
        if actions:
            writes = (*view.writes, *(to_own_write(action) for action in actions))
            self.observe(msgspec.structs.replace(view, writes=writes))
        return actions
