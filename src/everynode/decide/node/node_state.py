"""NodeState: the pods, revision and availability of one node. All decisions about it read it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from everynode.api import keys
from everynode.api.objects import Node, Pod
from everynode.api.times import seconds
from everynode.decide.inplace.state import has_unfinished_update, read_state, started_at
from everynode.decide.inplace.update import STARTED
from everynode.decide.node import reasons
from everynode.decide.node.assessment import NodeCounts, TargetFacts, earliest
from everynode.decide.node.availability import available_at, is_ready
from everynode.decide.node.clock_skew import FutureTimes, effective_time
from everynode.decide.node.eligibility import eligibility_for
from everynode.decide.node.failures import is_failing_again
from everynode.decide.node.maintenance import is_set_aside
from everynode.decide.node.proof import PROVEN_AFTER, proven_at, steady_at
from everynode.decide.node.sickness import sick_at
from everynode.decide.plan import Plan
from everynode.decide.pods.own_pods import OwnPods, age_order
from everynode.decide.view import NodeView, WriteKind

# A target pod that is still unavailable this many seconds after it reached the target no longer
# keeps unready old pods on other nodes from being replaced.
UNAVAILABLE_TIMEOUT: Final = 300.0

_NO_UIDS: Final[frozenset[str]] = frozenset()
_DONE_COUNTS: Final = ("done", "as_declared")


class NodeState:
    """One node at one moment: its pods, its revision, and what it costs the budget. Never changed.

    Own writes that the cache does not show yet count at the worse of before and after: a pod that
    we wrote to is not up, and a node that we wrote to for the target is under way.
    """

    __slots__ = (
        "available",
        "blocks_replacements",
        "changes_at",
        "down",
        "eligible",
        "facts",
        "given_up",
        "in_scope",
        "kept",
        "kept_old",
        "kept_target",
        "node",
        "node_revision",
        "now",
        "old_pods",
        "plan",
        "pods",
        "proven",
        "released",
        "set_aside",
        "target_pods",
        "under_way",
        "unsteady",
        "up",
        "view",
    )

    def __init__(
        self,
        plan: Plan,
        view: NodeView,
        node: Node,
        *,
        facts: TargetFacts,
        in_scope: bool,
        released: bool,
        now: float,
    ) -> None:
        self.plan = plan
        self.view = view
        self.node = node
        self.facts = facts
        self.in_scope = in_scope
        self.released = released  # selector and partition allow the target, paused or not
        self.now = now
        # R4: its kubelet does not report, or the node is in maintenance. Its pod is not taken.
        self.set_aside = is_set_aside(node)
        self.pods = OwnPods(view.pods)
        self._find_revision()
        changes_at = self._find_available_pods()
        self._find_kept_pods()
        changes_at = earliest(now, changes_at, self._find_proof())
        self.under_way = in_scope and self.eligible.should_continue and self._is_under_way()
        self.blocks_replacements = False
        if self.under_way:
            until = self._blocks_replacements_until()
            self.blocks_replacements = until is None or now < until
            changes_at = earliest(now, changes_at, until)
        self.down = in_scope and (not self.up if self.eligible.should_run else self.under_way)
        self.given_up = self.down and not self.blocks_replacements and self._is_given_up()
        # When a pod becomes available or a timeout ends, without any event.
        self.changes_at = changes_at

    def _find_revision(self) -> None:
        """Find the revision that pods of this node should have, and whether its template fits."""
        plan = self.plan
        target = plan.target_hash
        # R3: a node that is not in scope is held at the revision it has.
        self.node_revision = (
            target if self.in_scope else held_revision(plan, self.pods, self.view.last_pod)
        )
        self.eligible = (
            self.facts.eligibility
            if self.node_revision == target
            else eligibility_for(plan.constraints[self.node_revision], self.node)
        )

    def _find_available_pods(self) -> float | None:
        """Find the available pods, as sets of uids; `up` are those we have not written to.

        Return when the next pod becomes available; None if no such time is known.
        """
        found = []
        next_at: float | None = None
        for pod in self.pods.active:
            at = available_at(pod, self.plan.min_ready_seconds, self.view.ahead)
            if at is None:
                continue
            if at <= self.now:
                found.append(pod.uid)
            else:
                next_at = earliest(self.now, next_at, at)
        self.available = frozenset(found) if found else _NO_UIDS
        written = self._written_pods()
        self.up = self.available - written if written else self.available
        return next_at

    def _find_proof(self) -> float | None:
        """Find out whether the target is proven here (R4); return when that changes.

        A target pod whose container restarted lately is not up, even if it is available.
        """
        self.unsteady: list[str] = []
        self.proven = False
        next_at: float | None = None
        for pod in self.target_pods:
            if pod.uid not in self.up:
                continue
            until = steady_at(pod, self.view.ahead)
            if until > self.now:
                self.unsteady.append(pod.uid)
            elif self.plan.min_ready_seconds < PROVEN_AFTER:
                until = proven_at(pod, self.view.ahead)
            self.proven = self.proven or until <= self.now
            next_at = earliest(self.now, next_at, until)
        if self.unsteady:
            self.up = self.up.difference(self.unsteady)
        return next_at

    def _written_pods(self) -> frozenset[str]:
        writes = self.view.writes
        return frozenset([write.uid for write in writes]) if writes else _NO_UIDS

    def _find_kept_pods(self) -> None:
        """Sort active pods by revision and choose those to keep: one, or one of each with surge."""
        self.target_pods: list[Pod] = []
        self.old_pods: list[Pod] = []
        for pod in self.pods.active:
            (self.target_pods if self.plan.is_at_target(pod) else self.old_pods).append(pod)
        old = self._prefer(self.old_pods) if self.old_pods else None
        target = self._prefer(self.target_pods) if self.target_pods else None
        if old is not None and target is not None and not self.plan.surging:
            if self._prefer([old, target]) is old:
                target = None
            else:
                old = None
        self.kept_old, self.kept_target = old, target
        self.kept = [pod for pod in (old, target) if pod is not None]

    @property
    def must_wait(self) -> bool:
        """Whether nothing may be written now: an own write is unseen, or one was just refused."""
        return bool(self.view.writes) or self.view.retry_at > self.now

    def is_ready(self, pod: Pod) -> bool:
        """Whether the pod is Ready; an available pod is known to be."""
        return pod.uid in self.available or is_ready(pod)

    def sick_at(self, pod: Pod) -> float:
        """Return when a pod that is not Ready counts as sick (R4)."""
        return sick_at(pod, self.view.ahead)

    def is_taken_out_of_service(self, pod: Pod) -> bool:
        """Whether our gate of an old pod is closed for an in-place update that is not written."""
        if not pod.spec.readiness_gates:
            return False
        condition = pod.condition(keys.INPLACE_UPDATE_READY)
        if condition is None or condition.status == "True" or condition.reason != STARTED:
            return False
        return not has_unfinished_update(pod)

    def counts(self, code: str = "") -> NodeCounts:
        """Return what the node adds to the totals; `code` is the reason why it is not done."""
        writing, creating = len(self.view.writes), 0
        if writing:
            creating = sum([write.kind is WriteKind.CREATE for write in self.view.writes])
        names = self._budget_counts(creating)
        if self.facts.eligibility.should_run:
            names += self._desired_counts(code)
        elif self.pods.primary is not None:
            names.append("misscheduled")
        if not self.eligible.should_continue and self.pods.all:
            names.append("removing")
        if code == reasons.SURGE_CANNOT_FIT:
            names.append("port_conflict")
        if code in reasons.PROGRESSING_CODES and not self._is_retrying():
            names.append("moving")
        return _shared_counts(tuple(names), creating, writing - creating)

    def _desired_counts(self, code: str) -> list[str]:
        """Return the fields of the status and of the conditions to which a desired node adds 1."""
        names = ["desired"]
        available = updated = False
        first = self.pods.primary
        if first is not None:
            names.append("current")
            available = first.uid in self.available
            updated = self.plan.is_at_target(first)
            if available or is_ready(first):
                names.append("ready")
        if available:
            names.append("available")
        if self.available:
            names.append("available_any")
        if updated:
            names.append("updated")
        if not self.in_scope:
            names.append("held")
        elif not (self.facts.holds_target or self.under_way):
            names.append("not_started")
        names += _DONE_COUNTS if available and updated else self._condition_counts(code)
        return names

    def _condition_counts(self, code: str) -> tuple[str, ...]:
        """Return the field for Ready and Complete to which a desired node adds that is not done."""
        if self.in_scope and self.plan.rolling:
            silent = self.set_aside and not self.facts.holds_target
            return ("silent_unreached",) if silent else ()
        # The spec leaves the node as it is, which may be without a pod.
        left_empty = code == reasons.WITHHELD or not self.eligible.should_run
        if self.available or left_empty:
            return ("as_declared",)
        return ("silent_held",) if self.set_aside else ()

    def _is_retrying(self) -> bool:
        """Whether what moves here has failed before: for long, or again and again."""
        if self.under_way and not self.blocks_replacements:
            return True
        target = self.plan.target_hash
        return any(is_failing_again(pod, target, self.view.ahead) for pod in self.pods.all)

    def _budget_counts(self, creating: int) -> list[str]:
        """Return the fields of the budget to which the node adds 1.

        Nodes that are set aside are counted separately (R4).
        """
        names: list[str] = []
        pods = self.pods
        # The first comparison is cheap and usually false.
        if len(pods.all) + creating > 1 and len(pods.all) - len(pods.all_finished) + creating > 1:
            names.append("unreachable_two_pods" if self.set_aside else "two_pods")
        if not self.in_scope:
            return names
        if self.set_aside:
            return names + self._unreachable_counts()
        if self.down:
            names.append("given_up" if self.given_up else "down")
        if self.blocks_replacements:
            names.append("under_way")
        if self.target_pods and not self.up.isdisjoint([pod.uid for pod in self.target_pods]):
            names.append("target_available")
        if self.proven:
            names.append("target_proven")
        elif self._is_unproven():
            names.append("unproven")
        return names

    def _unreachable_counts(self) -> list[str]:
        names: list[str] = []
        if self.eligible.should_run or self.under_way:
            names.append("unreachable")
        if self.down:
            names.append("unreachable_down")
        if self.blocks_replacements:
            names.append("unreachable_under_way")
        if self._may_be_cut_off_by_target():
            names.append("unreachable_after_update")
        return names

    def _is_unproven(self) -> bool:
        """Whether the node is up only by a target pod that does not prove the target yet."""
        return (
            bool(self.target_pods and self.up)
            and not self.proven
            and self.up.isdisjoint([pod.uid for pod in self.old_pods])
        )

    def _prefer(self, pods: list[Pod]) -> Pod:
        """Return the pod to keep: an available one first, then Ready, node's revision, oldest."""
        if len(pods) == 1:
            return pods[0]
        return min(
            pods,
            key=lambda pod: (
                pod.uid not in self.available,
                not is_ready(pod),
                not self._has_node_revision(pod),
                age_order(pod),
            ),
        )

    def _has_node_revision(self, pod: Pod) -> bool:
        if self.node_revision == self.plan.target_hash:
            return self.plan.is_at_target(pod)
        return pod.hash == self.node_revision

    def _is_under_way(self) -> bool:
        """Whether the node was emptied for the target, or its target pod is not available."""
        if self.eligible.should_run and not self.pods.active:
            return True
        for pod in self.target_pods:
            if pod.uid not in self.up:
                return True
        written = self._written_pods()
        for pod in self.old_pods:
            if pod.uid in written or self.is_taken_out_of_service(pod):
                return True
        if self.view.writes and has_pending_create(self.view, self.plan.target_hash):
            return True
        return not self.eligible.should_run and any(map(self.is_withdrawn, self.pods.leaving))

    def is_withdrawn(self, pod: Pod) -> bool:
        """Whether the target withdraws the toleration by which this old pod came here (R4)."""
        return self.plan.withdraws_toleration(pod, self.node)

    def _may_be_cut_off_by_target(self) -> bool:
        """Whether the target may be the reason why the node is set aside.

        It is not the reason on a node that the update has not reached. Otherwise an old pod that
        cannot terminate because its kubelet is gone would block all other nodes.
        """
        if not self.under_way:
            return False
        return (
            any(self.plan.is_at_target(pod) for pod in self.pods.all)
            or bool(self.view.writes)
            or any(self.is_taken_out_of_service(pod) for pod in self.old_pods)
        )

    def _is_given_up(self) -> bool:
        """Whether the update need not wait for a node whose target pod has had its time (R4).

        Its kubelet reports that the node is not ready, and its pod was sick before the target came.
        """
        if not self.under_way or self.node.ready != "False":
            return False
        target = self.plan.target_hash
        tried = (*self.target_pods, *self.pods.finished)
        return any(pod.metadata.annotations.replaced_sick == target for pod in tried)

    def _blocks_replacements_until(self) -> float | None:
        """Return until when this node blocks replacing unready pods on others (R4); None: no end.

        A target pod blocks them until its timeout; anything else blocks them until it is done.
        """
        pods = self.pods
        if self.view.writes:
            return None
        finished = [] if pods.active or pods.terminating or pods.preparing else pods.finished
        tried = [pod for pod in (*self.target_pods, *finished) if self.plan.is_at_target(pod)]
        if not tried:
            return None
        reached = max(reached_revision_at(pod, self.view.ahead) for pod in tried)
        return reached + self.plan.min_ready_seconds + UNAVAILABLE_TIMEOUT


@lru_cache(maxsize=1024)
def _shared_counts(names: tuple[str, ...], creating: int, changing: int) -> NodeCounts:
    """Return counts with 1 in the named fields.

    Most nodes of a DaemonSet have equal counts. They share a few objects, so that the totals can
    compare them by identity.
    """
    return NodeCounts(creating=creating, changing=changing, **dict.fromkeys(names, 1))


def has_pending_create(view: NodeView, revision: str) -> bool:
    """Whether we have created a pod of this revision that the cache does not show yet."""
    return any(
        write.kind is WriteKind.CREATE and write.revision == revision for write in view.writes
    )


def held_revision(plan: Plan, pods: OwnPods, last_pod: Pod | None = None) -> str:
    """Return the revision a held node keeps (R3).

    It is that of a pod still there, else of the last one that was there, else the fallback.
    """
    for group in (
        pods.active,
        pods.preparing,
        pods.terminating,
        pods.finished,
        pods.finished_terminating,
    ):
        for pod in group:
            if pod.hash in plan.revisions:
                return pod.hash
    if last_pod is not None and last_pod.hash in plan.revisions:
        return last_pod.hash
    return plan.fallback_hash


def reached_revision_at(pod: Pod, ahead: FutureTimes = ()) -> float:
    """Return when the pod reached its revision: when it was created, or updated in place."""
    state = read_state(pod)
    changed = started_at(state) if state is not None and state.revision == pod.hash else None
    created = seconds(pod.metadata.creation_timestamp) or 0.0
    return max(effective_time(created, ahead), effective_time(changed or 0.0, ahead))
