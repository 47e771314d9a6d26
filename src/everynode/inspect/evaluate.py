"""Evaluation of a snapshot by the controller's own decision; nothing is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.objects import Condition, Node, Pod
from everynode.api.times import seconds
from everynode.decide.decision import Decision
from everynode.decide.fleet.budget import count_down, resolve_limits
from everynode.decide.fleet.conditions import (
    COMPLETE,
    FAULTY,
    PROGRESSING,
    READY,
    STALL_SECONDS,
    STALLED,
    TARGET_REFUSED,
)
from everynode.decide.fleet.verification import UNASKED, Verdict
from everynode.decide.ledger import Ledger
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Assessment, NodeCounts
from everynode.decide.node.clock_skew import pod_times
from everynode.decide.plan import Plan, make_plan
from everynode.decide.revisions.target import (
    TargetChoice,
    choose_target,
)
from everynode.decide.view import NodeView
from everynode.inspect.fleet import (
    Budget,
    Counts,
    FleetView,
    NodeRow,
    NodeStanding,
    RolloutState,
)
from everynode.inspect.history import StoredRevision, build_history, read_images, read_stored
from everynode.inspect.pod_facts import PodReader, by_node
from everynode.inspect.reported_rooms import ReportedRooms
from everynode.inspect.rows import RowCache
from everynode.inspect.snapshot import Snapshot

# What keeps a rollout from being complete whose condition Ready is True, by its reason.
_AS_DECLARED: Final = {
    "AllButSilent": RolloutState.ALL_BUT_SILENT,
    "OnDelete": RolloutState.ON_DELETE,
}
_PACE_NODES: Final = 30  # the pace is that of the last nodes
_PACE_BATCHES: Final = 4
_PACE_SECONDS: Final = 3600.0
_REFUSED_IN_MESSAGE: Final = re.compile(rf"\d+ {reasons.REFUSED} \(([^)]*)\)")
_RETRY_SECONDS: Final = 60.0
_REFUSED_TEXT: Final = "the API server refuses its pod; an event of the DaemonSet says why"


class Evaluation(msgspec.Struct, frozen=True):
    """A fleet, and the decision that it comes from; without nodes there is no decision."""

    fleet: FleetView
    plan: Plan
    assessments: Mapping[str, Assessment]
    pods: Mapping[str, tuple[Pod, ...]]  # by node
    nodes: Mapping[str, Node]


def evaluate(snapshot: Snapshot, now: float) -> Evaluation:
    """Return how the rollout stands, as the controller would decide from the same objects."""
    return Evaluator().evaluate(snapshot, now)


class Evaluator:
    """Evaluates one snapshot of a DaemonSet after the other; nodes that did not change cost little.

    The result is that of an evaluation from scratch.
    """

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._views: dict[str, NodeView] = {}  # as observed, without the actions of a decision
        self._acted: set[str] = set()
        self._pods = PodReader()
        self._rows = RowCache()

    def evaluate(self, snapshot: Snapshot, now: float) -> Evaluation:
        """Return how the rollout stands, as the controller would decide from the same objects."""
        ds = snapshot.ds
        stored = [read_stored(each, ds.uid) for each in snapshot.revisions or ()]
        facts = self._pods.read(snapshot.pods or ())
        choice = _choose(snapshot.ds, stored, Counter([each.hash for each in facts]))
        faults = [each.fault for each in stored if each.fault is not None]
        known = [each.revision for each in stored if each.fault is None]
        planned = msgspec.structs.replace(ds, faults=(*ds.faults, *faults, *choice.faults))
        plan = make_plan(planned, choice.target, known, choice.from_hash)
        pods = by_node(facts)
        nodes = {node.metadata.name: node for node in snapshot.nodes or ()}
        ledger = None
        if snapshot.nodes is not None:
            ledger = self._observe(snapshot, plan, nodes, pods, now)
        assessments: dict[str, Assessment] = {}
        if ledger is not None:
            ledger.assess(now)
            assessments = {each.name: each for each in ledger.assessments()}
        rows = self._rows.build(plan, nodes, pods, assessments, now)
        totals = ledger.sums if ledger is not None else None
        refusal = _refusal(ds)
        verdict = Verdict(plan.target_hash, refusal) if refusal else UNASKED
        decision = ledger.decide(now, ds.status, verdict=verdict) if ledger is not None else None
        if decision is not None:
            self._acted = {action.node for action in decision.actions}
        revisions = [each.revision(plan) for each in facts]
        ready = [
            each.ready_at
            for each, revision in zip(facts, revisions, strict=True)
            if each.ready_at is not None and revision == plan.target_hash
        ]
        fleet = _fleet(snapshot, plan, rows, _Decided(totals, decision, refusal), ready, now)
        history = build_history(stored, plan, Counter(revisions))
        fleet = msgspec.structs.replace(fleet, revisions=history)
        return Evaluation(fleet, plan, assessments, pods, nodes)

    def _observe(
        self,
        snapshot: Snapshot,
        plan: Plan,
        nodes: Mapping[str, Node],
        pods: Mapping[str, tuple[Pod, ...]],
        now: float,
    ) -> Ledger:
        """Pass the changed nodes to the ledger, without the actions of the last decision."""
        refusals, reported = _Refusals(snapshot.ds), ReportedRooms(snapshot.ds)
        if self._ledger is None:
            self._ledger = Ledger(plan)
        ledger, views = self._ledger, self._views
        ledger.set_plan(plan)
        for name in [each for each in views if each not in nodes and each not in pods]:
            del views[name]
            ledger.forget(name)
        names = [*nodes, *(each for each in pods if each not in nodes)]
        some = refusals.some or reported.some or bool(snapshot.rooms)
        changed = self._acted & views.keys()
        for name in names:
            node, here = nodes.get(name), pods.get(name, ())
            trouble, room = "", None
            if some:
                trouble = refusals.trouble(name, here)
                room = snapshot.rooms.get(name) or reported.room_of(name, plan.target_hash, now)
            known = views.get(name)
            same = known is not None and known.node is node and known.pods == here
            if known is None or not same or trouble or known.trouble or room != known.room:
                view = _view(name, node, here, trouble, now)
                views[name] = msgspec.structs.replace(view, room=room)
                changed.add(name)
        for name in sorted(changed):
            ledger.observe(views[name])
        self._acted = set()
        return ledger


def is_complete(ds: DaemonSet) -> bool:
    """Whether the status says that the newest spec is complete: then nothing else is read."""
    return ds.metadata.generation <= ds.status.observed_generation and _complete(ds.status)


def _complete(status: DaemonSetStatus) -> bool:
    """Whether a status says so by its condition; without that (another controller), by numbers."""
    condition = _condition(status, COMPLETE)
    if condition is not None:
        return condition.status == "True"
    return status.updated >= status.desired and status.available >= status.desired


def _condition(status: DaemonSetStatus, kind: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == kind), None)


def summarise(ds: DaemonSet) -> FleetView:
    """Return how the rollout stands by the status alone, for a DaemonSet that is complete."""
    status = ds.status
    complete = _condition(status, COMPLETE)
    limits = resolve_limits(ds.strategy, status.desired)
    strategy = ds.strategy
    surging = strategy.max_surge.value > 0
    return FleetView(
        ds=ds,
        state=RolloutState.COMPLETE,
        counts=Counts(
            desired=status.desired,
            updated=status.updated,
            ready=status.ready,
            available=status.available,
        ),
        budget=Budget(
            field="maxSurge" if surging else "maxUnavailable",
            written=str(strategy.max_surge if surging else strategy.max_unavailable),
            promised=limits.max_surge if surging else limits.max_unavailable,
            used=0,
        ),
        status=status,
        target=status.update_revision,
        images=read_images(ds.template),
        started=seconds(complete.last_transition_time) if complete is not None else None,
    )


# --- The input of the decision -----------------------------------------------------------------


def _choose(
    ds: DaemonSet, stored: Iterable[StoredRevision], counts: Mapping[str, int]
) -> TargetChoice:
    return choose_target(
        ds,
        [each.revision for each in stored if each.fault is None],
        counts,
        unreadable=[each.revision for each in stored if each.fault is not None],
    )


def _refusal(ds: DaemonSet) -> str:
    """Return why the API server refuses pods of the target, as the controller's dry run found."""
    condition = _condition(ds.status, TARGET_REFUSED)
    if condition is None or condition.status != "True":
        return ""
    return condition.message


class _Refusals:
    """The nodes on which the API server refuses what the controller writes.

    Only the controller knows of it. Its condition counts them and names the first few.
    """

    def __init__(self, ds: DaemonSet) -> None:
        condition = _condition(ds.status, PROGRESSING)
        found = _REFUSED_IN_MESSAGE.search(condition.message) if condition is not None else None
        names = found[1].split(", ") if found is not None else []
        self.some = bool(names)
        self._more = "…" in names
        self._named = frozenset(names)

    def trouble(self, node: str, pods: tuple[Pod, ...]) -> str:
        """Return what is known of a refused write on a node; empty if there was none."""
        refused = node in self._named or (self._more and not pods)
        return _REFUSED_TEXT if refused else ""


def _view(
    name: str, node: Node | None, pods: tuple[Pod, ...], trouble: str, now: float
) -> NodeView:
    return NodeView(
        name=name,
        node=node,
        pods=pods,
        # The controller tries again after a pause; until then nothing happens there.
        retry_at=now + _RETRY_SECONDS if trouble else 0.0,
        trouble=trouble,
        ahead=tuple((t, now) for pod in pods for t in pod_times(pod) if t > now),
    )


# --- The whole ---------------------------------------------------------------------------------


class _Decided(msgspec.Struct, frozen=True):
    """The decision, and the totals before its actions are counted as under way."""

    totals: NodeCounts | None
    decision: Decision | None
    refusal: str = ""

    @property
    def moves(self) -> bool:
        """Whether there is something to do now, or the target only has to prove itself."""
        if self.decision is None or self.totals is None:
            return False
        return bool(self.decision.actions) or (
            self.totals.unproven > 0 and not self.totals.target_proven
        )


def _fleet(
    snapshot: Snapshot,
    plan: Plan,
    rows: tuple[NodeRow, ...],
    decided: _Decided,
    ready: Iterable[float],
    now: float,
) -> FleetView:
    ds = snapshot.ds
    status = decided.decision.status if decided.decision is not None else ds.status
    faulty = _condition(ds.status, FAULTY)
    standings = Counter([row.standing for row in rows])
    totals = decided.totals
    counts = Counts(
        desired=status.desired,
        # Without the nodes only the status is known; it also counts pods that are not available.
        updated=totals.done if totals is not None else status.updated,
        ready=status.ready,
        available=status.available,
        updating=standings[NodeStanding.UPDATING],
        waiting=standings[NodeStanding.WAITING],
        queued=standings[NodeStanding.QUEUED],
        held=totals.held if totals is not None else 0,
        not_eligible=standings[NodeStanding.NOT_ELIGIBLE],
    )
    state = _state(snapshot, plan, rows, counts, decided, now)
    budget = _budget(plan, totals, counts)
    started = _rollout_started_at(snapshot, plan)
    since = max(started or 0.0, now - _PACE_SECONDS)
    per_minute = _pace(ready, since, now, at_once=budget.promised)
    return FleetView(
        ds=ds,
        state=state,
        counts=counts,
        budget=budget,
        status=status,
        rows=rows,
        target=plan.target_hash,
        images=read_images(ds.template),
        started=started,
        per_minute=per_minute,
        seconds_left=_seconds_left(state, counts, per_minute),
        refusal=decided.refusal,
        faults=faulty.message if faulty is not None and faulty.status == "True" else "",
        missing=snapshot.missing,
    )


def _state(
    snapshot: Snapshot,
    plan: Plan,
    rows: tuple[NodeRow, ...],
    counts: Counts,
    decided: _Decided,
    now: float,
) -> RolloutState:
    ds = snapshot.ds
    status = decided.decision.status if decided.decision is not None else ds.status
    if ds.metadata.generation > ds.status.observed_generation:
        return RolloutState.UNOBSERVED
    if _complete(status):
        return RolloutState.COMPLETE
    queued = any(row.place is not None for row in rows)
    if counts.updating or (decided.moves and queued):
        return RolloutState.PROGRESSING
    if plan.rolling and ds.strategy.paused:
        return RolloutState.PAUSED
    ready = _condition(status, READY)
    if ready is not None and ready.status == "True" and ready.reason in _AS_DECLARED:
        return _AS_DECLARED[ready.reason]
    waiting = any(row.standing is NodeStanding.WAITING and row.in_scope for row in rows)
    if waiting or decided.refusal:
        return _waiting_or_stalled(snapshot, status, now)
    if not plan.rolling:
        return RolloutState.ON_DELETE
    if queued:
        return RolloutState.PROGRESSING  # only time has to pass
    return RolloutState.HELD if counts.held else _waiting_or_stalled(snapshot, status, now)


def _waiting_or_stalled(snapshot: Snapshot, status: DaemonSetStatus, now: float) -> RolloutState:
    """Return whether nothing has moved for so long that it counts as stalled.

    The condition says so for the Advanced kind. The native kind has no such condition: there the
    last change of a pod counts, by the same rule.
    """
    condition = _condition(status, STALLED)
    if condition is not None or snapshot.ds.flavour is Flavour.ADVANCED:
        stalled = condition is not None and condition.status == "True"
        return RolloutState.STALLED if stalled else RolloutState.WAITING
    times = [time for pod in snapshot.pods or () for time in pod_times(pod) if time <= now]
    long = now - max(times, default=now) >= STALL_SECONDS + snapshot.ds.min_ready_seconds
    return RolloutState.STALLED if long else RolloutState.WAITING


def _budget(plan: Plan, totals: NodeCounts | None, counts: Counts) -> Budget:
    strategy = plan.ds.strategy
    limits = resolve_limits(strategy, counts.desired)
    if plan.surging:
        used = totals.two_pods if totals is not None else 0
        return Budget(
            field="maxSurge",
            written=str(strategy.max_surge),
            promised=limits.max_surge,
            used=used,
        )
    used = counts.desired - counts.available
    if totals is not None:
        # Where all nodes are updated and available, there is no node whose turn needs a proof.
        proven = totals.target_proven or counts.updated == counts.desired
        used = count_down(totals.down, totals.unproven, target_proven=proven)
    return Budget(
        field="maxUnavailable",
        written=str(strategy.max_unavailable),
        promised=limits.max_unavailable,
        used=used,
    )


def _pace(ready: Iterable[float], since: float, now: float, *, at_once: int) -> float | None:
    """Return how many nodes became Ready at the target per minute, over the last of them.

    `ready` are the times at which they became that. Those before the rollout began are of pods that
    an undo need not touch.

    Nodes that are updated `at_once` become Ready at once: several such batches are needed.
    """
    times = [moment for moment in ready if since <= moment <= now]
    recent = sorted(times)[-max(_PACE_NODES, _PACE_BATCHES * at_once) :]
    if len(recent) < 3 or now <= recent[0]:
        return None
    return (len(recent) - 1) / (now - recent[0]) * 60


def _seconds_left(state: RolloutState, counts: Counts, per_minute: float | None) -> float | None:
    remaining = counts.desired - counts.held - counts.updated
    if state is not RolloutState.PROGRESSING or not per_minute or remaining <= 0:
        return None
    return remaining / per_minute * 60


def _rollout_started_at(snapshot: Snapshot, plan: Plan) -> float | None:
    """Return when the rollout began or was complete: since when the condition says so.

    Without that condition (another controller is at work) it is the age of the target revision.
    """
    condition = _condition(snapshot.ds.status, COMPLETE)
    if condition is not None:
        return seconds(condition.last_transition_time)
    for stored in snapshot.revisions or ():
        if stored.metadata.name == plan.target.name:
            return seconds(stored.metadata.creation_timestamp)
    return None
