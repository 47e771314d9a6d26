"""How one node stands: its pods, what it lives by, and what it costs the budget."""

from __future__ import annotations

from typing import Final

from everynode.api import keys
from everynode.api.objects import Node, Pod
from everynode.api.times import seconds
from everynode.decide.assessment import Profile, Survey
from everynode.decide.availability import available_at, is_ready
from everynode.decide.eligibility import judge
from everynode.decide.inplace import STARTED
from everynode.decide.inplace_state import begun_at, is_unfinished, read_state
from everynode.decide.plan import Plan
from everynode.decide.pods import Pods, seniority
from everynode.decide.view import NodeView, Pending

# A target pod that is not available so long after it came no longer holds up the next cure.
PATIENCE: Final = 300.0


class Situation:
    """One node at one moment. Everything else that is decided about the node is read from here.

    Own writes that are not seen yet count at the worse of before and after: a pod that we touched
    is not available, and a node that we touched for the target is under way.
    """

    def __init__(
        self,
        plan: Plan,
        view: NodeView,
        node: Node,
        *,
        surveyed: Survey,
        in_scope: bool,
        released: bool,
        now: float,
    ) -> None:
        self.plan = plan
        self.view = view
        self.node = node
        self.surveyed = surveyed
        self.in_scope = in_scope
        self.released = released
        self.now = now
        self.wake_at: float | None = None
        self.reachable = node.ready != "Unknown"
        self.pods = pods = Pods(view.pods)
        target = plan.target_hash
        self.life = target if in_scope else held_revision(plan, pods)
        self.eligible = (
            surveyed.eligibility if self.life == target else judge(plan.facts[self.life], node)
        )
        self.available = frozenset(pod.uid for pod in pods.staying if self._is_available(pod))
        touched = frozenset(write.uid for write in view.writes)
        self.up = self.available - touched if touched else self.available
        self.targets = [pod for pod in pods.staying if plan.carries(pod)]
        self.olds = [pod for pod in pods.staying if not plan.carries(pod)]
        self.kept_target = self.prefer(self.targets)
        self.kept_old = self.prefer(self.olds)
        self.kept = self._keep()
        self.under_way = in_scope and self.eligible.should_continue and self._is_under_way(touched)
        self.holding = self.under_way and self._is_holding()
        self.down = in_scope and (not self.up if self.eligible.should_run else self.under_way)

    def wake(self, at: float) -> None:
        """Something changes by itself at that time."""
        if at > self.now and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    @property
    def busy(self) -> bool:
        """Whether nothing may be done here now: a write is unseen, or one was just refused."""
        return bool(self.view.writes) or self.view.retry_at > self.now

    def prefer(self, pods: list[Pod]) -> Pod | None:
        """The one to keep of several: the available, the Ready, the right one, the senior."""
        if len(pods) < 2:
            return pods[0] if pods else None
        return min(
            pods,
            key=lambda pod: (
                pod.uid not in self.available,
                not is_ready(pod),
                not self._lives(pod),
                seniority(pod),
            ),
        )

    def is_begun(self, pod: Pod) -> bool:
        """Whether an old pod was taken out of service for an in-place update not yet written."""
        condition = pod.condition(keys.INPLACE_UPDATE_READY)
        if condition is None or condition.status == "True" or condition.reason != STARTED:
            return False
        return not is_unfinished(pod)

    def profile(self, *, clashing: bool = False) -> Profile:
        """What the node adds to the sums."""
        pods, view = self.pods, self.view
        wanted = self.surveyed.eligibility.should_run
        present = len(pods.all) > len(pods.gone)
        first = pods.senior if wanted and present else None
        reachable, in_scope = self.reachable, self.in_scope
        lost = in_scope and not reachable and (self.eligible.should_run or self.under_way)
        creating = sum(write.kind is Pending.CREATE for write in view.writes)
        doubled = len(pods.all) - len(pods.finished) - len(pods.gone) + creating > 1
        return Profile(
            wanted=wanted,
            current=wanted and present,
            misscheduled=present and not wanted,
            ready=first is not None and is_ready(first),
            available=first is not None and first.uid in self.available,
            updated=first is not None and self.plan.carries(first),
            held=wanted and not in_scope,
            down=reachable and self.down,
            under_way=reachable and self.holding,
            proven=reachable and in_scope and any(pod.uid in self.up for pod in self.targets),
            lost=lost,
            lost_down=lost and self.down,
            lost_under_way=lost and self.holding,
            lost_moved=lost and self.under_way,
            doubled=doubled and reachable,
            lost_doubled=doubled and not reachable,
            creating=creating,
            changing=len(view.writes) - creating,
            clashing=clashing,
        )

    def _is_available(self, pod: Pod) -> bool:
        at = available_at(pod, self.plan.min_ready_seconds)
        if at is None:
            return False
        if at <= self.now:
            return True
        self.wake(at)
        return False

    def _keep(self) -> list[Pod]:
        """The pods that may stay: one, or with surge an old one and a target one."""
        old, target = self.kept_old, self.kept_target
        if old is None or target is None:
            return [pod for pod in (old, target) if pod is not None]
        if self.plan.surging and self.in_scope:
            return [old, target]
        kept = self.prefer([old, target])
        assert kept is not None
        self.kept_old = old if kept is old else None
        self.kept_target = target if kept is target else None
        return [kept]

    def _lives(self, pod: Pod) -> bool:
        if self.life == self.plan.target_hash:
            return self.plan.carries(pod)
        return pod.hash == self.life

    def _is_under_way(self, touched: frozenset[str]) -> bool:
        """Emptied for the target, or its target pod is not available."""
        if self.eligible.should_run and not self.pods.staying:
            return True
        if any(pod.uid not in self.up for pod in self.targets):
            return True
        if any(pod.uid in touched or self.is_begun(pod) for pod in self.olds):
            return True
        target = self.plan.target_hash
        return any(
            write.kind is Pending.CREATE and write.revision == target for write in self.view.writes
        )

    def _is_holding(self) -> bool:
        """Whether the next cure waits for this node: not for a target that has had its time."""
        pods = self.pods
        if self.view.writes:
            return True
        ended = [] if pods.staying or pods.terminating or pods.preparing else pods.finished
        tried = [pod for pod in (*self.targets, *ended) if self.plan.carries(pod)]
        if not tried:
            return True
        until = max(_came_at(pod) for pod in tried) + self.plan.min_ready_seconds + PATIENCE
        self.wake(until)
        return self.now < until


def held_revision(plan: Plan, pods: Pods) -> str:
    """The revision a held node lives by (R3): that of a pod still there, else what it came from."""
    for group in (pods.staying, pods.preparing, pods.terminating, pods.finished, pods.gone):
        for pod in group:
            if pod.hash in plan.revisions:
                return pod.hash
    return plan.return_hash


def _came_at(pod: Pod) -> float:
    """When the pod came to its revision: by creation, or later in place."""
    state = read_state(pod)
    changed = begun_at(state) if state is not None and state.revision == pod.hash else None
    return max(seconds(pod.metadata.creation_timestamp) or 0.0, changed or 0.0)
