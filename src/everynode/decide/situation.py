"""How one node stands: its pods, what it lives by, and what it costs the budget."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from everynode.api import keys
from everynode.api.objects import Node, Pod
from everynode.api.times import seconds
from everynode.decide.assessment import Profile, Survey
from everynode.decide.availability import is_ready, stays_available_at
from everynode.decide.eligibility import judge
from everynode.decide.inplace import STARTED
from everynode.decide.inplace_state import begun_at, is_unfinished, read_state
from everynode.decide.plan import Plan
from everynode.decide.pods import Pods, seniority
from everynode.decide.view import NodeView, Pending

# A target pod that is not available so long after it came no longer holds up the next cure.
PATIENCE: Final = 300.0

_NONE: Final[frozenset[str]] = frozenset()
_Seven = tuple[bool, bool, bool, bool, bool, bool, bool]
_NOT_COUNTED: Final[_Seven] = (False, False, False, False, False, False, False)


class Situation:
    """One node at one moment. Everything else that is decided about the node is read from here.

    Own writes that are not seen yet count at the worse of before and after: a pod that we touched
    is not available, and a node that we touched for the target is under way.
    """

    __slots__ = (
        "available",
        "down",
        "eligible",
        "holding",
        "in_scope",
        "kept",
        "kept_old",
        "kept_target",
        "life",
        "node",
        "now",
        "olds",
        "plan",
        "pods",
        "reachable",
        "released",
        "surveyed",
        "targets",
        "under_way",
        "up",
        "view",
        "wake_at",
    )

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
        self.available = self._find_available()
        touched = frozenset([write.uid for write in view.writes]) if view.writes else _NONE
        self.up = self.available - touched if touched else self.available
        self.targets: list[Pod] = []
        self.olds: list[Pod] = []
        for pod in pods.staying:
            (self.targets if plan.carries(pod) else self.olds).append(pod)
        self.kept_target = self._prefer(self.targets) if self.targets else None
        self.kept_old = self._prefer(self.olds) if self.olds else None
        self.kept: list[Pod] = self._keep() if pods.staying else []
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

    def is_ready(self, pod: Pod) -> bool:
        """Whether the pod is Ready; what is available need not be asked again."""
        return pod.uid in self.available or is_ready(pod)

    def is_begun(self, pod: Pod) -> bool:
        """Whether an old pod was taken out of service for an in-place update not yet written."""
        if not pod.spec.readiness_gates:
            return False
        condition = pod.condition(keys.INPLACE_UPDATE_READY)
        if condition is None or condition.status == "True" or condition.reason != STARTED:
            return False
        return not is_unfinished(pod)

    def profile(self, *, clashing: bool = False) -> Profile:
        """What the node adds to the sums."""
        pods, view = self.pods, self.view
        wanted = self.surveyed.eligibility.should_run
        first = pods.senior
        ready = available = updated = False
        if wanted and first is not None:
            available = first.uid in self.available
            ready = available or is_ready(first)
            updated = self.plan.carries(first)
        writing = len(view.writes)
        creating = sum([write.kind is Pending.CREATE for write in view.writes]) if writing else 0
        doubled = len(pods.all) + creating > 1 and len(pods.all) - len(pods.ended) + creating > 1
        # In the order of the fields: names would cost as much as all the rest.
        return _share_profile(
            wanted,
            wanted and first is not None,
            not wanted and first is not None,
            ready,
            available,
            updated,
            wanted and not self.in_scope,
            wanted and self.in_scope and not (self.surveyed.holds_target or self.under_way),
            *self._budget(),
            doubled and self.reachable,
            doubled and not self.reachable,
            creating,
            writing - creating,
            clashing,
            wanted and bool(self.available),
        )

    def _budget(self) -> _Seven:
        """The part of the profile that the budget counts: as reachable, or as lost."""
        if not self.in_scope:
            return _NOT_COUNTED
        if self.reachable:
            proven = any(pod.uid in self.up for pod in self.targets) if self.targets else False
            return self.down, self.holding, proven, False, False, False, False
        lost = self.eligible.should_run or self.under_way
        return False, False, False, lost, self.down, self.holding, self._has_met_target()

    def _find_available(self) -> frozenset[str]:
        found = []
        for pod in self.pods.staying:
            at = stays_available_at(pod, self.plan.min_ready_seconds)
            if at is None:
                continue
            if at <= self.now:
                found.append(pod.uid)
            else:
                self.wake(at)
        return frozenset(found) if found else _NONE

    def _prefer(self, pods: list[Pod]) -> Pod:
        """The one to keep of several: the available, the Ready, the right one, the senior."""
        if len(pods) == 1:
            return pods[0]
        return min(
            pods,
            key=lambda pod: (
                pod.uid not in self.available,
                not is_ready(pod),
                not self._lives(pod),
                seniority(pod),
            ),
        )

    def _keep(self) -> list[Pod]:
        """The pods that may stay: one, or with surge an old one and a target one."""
        old, target = self.kept_old, self.kept_target
        if old is None or target is None:
            return [pod for pod in (old, target) if pod is not None]
        if self.plan.surging:
            return [old, target]
        kept = self._prefer([old, target])
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
        for pod in self.targets:
            if pod.uid not in self.up:
                return True
        for pod in self.olds:
            if pod.uid in touched or self.is_begun(pod):
                return True
        return bool(self.view.writes) and is_coming(self.view, self.plan.target_hash)

    def _has_met_target(self) -> bool:
        """Whether the target may be what silenced the node.

        Not where it never came: an old pod that terminates for ever because its kubelet is gone
        would hold up all other nodes.
        """
        if not self.under_way:
            return False
        met = any(self.plan.carries(pod) for pod in self.pods.all)
        return met or bool(self.view.writes) or any(self.is_begun(pod) for pod in self.olds)

    def _is_holding(self) -> bool:
        """Whether the next cure waits for this node: not for a target that has had its time."""
        pods = self.pods
        if self.view.writes:
            return True
        ended = [] if pods.staying or pods.terminating or pods.preparing else pods.finished
        tried = [pod for pod in (*self.targets, *ended) if self.plan.carries(pod)]
        if not tried:
            return True
        until = max(came_at(pod) for pod in tried) + self.plan.min_ready_seconds + PATIENCE
        self.wake(until)
        return self.now < until


# Fleets are large and hardly differ: a few profiles serve all of their nodes.
_share_profile: Final = lru_cache(maxsize=1024)(Profile)


def is_coming(view: NodeView, revision: str) -> bool:
    """Whether we have created a pod of this revision that is not seen yet."""
    return any(write.kind is Pending.CREATE and write.revision == revision for write in view.writes)


def held_revision(plan: Plan, pods: Pods) -> str:
    """The revision a held node lives by (R3): that of a pod still there, else what it came from."""
    for group in (pods.staying, pods.preparing, pods.terminating, pods.finished, pods.gone):
        for pod in group:
            if pod.hash in plan.revisions:
                return pod.hash
    return plan.return_hash


def came_at(pod: Pod) -> float:
    """When the pod came to its revision: by creation, or later in place."""
    state = read_state(pod)
    changed = begun_at(state) if state is not None and state.revision == pod.hash else None
    return max(seconds(pod.metadata.creation_timestamp) or 0.0, changed or 0.0)
