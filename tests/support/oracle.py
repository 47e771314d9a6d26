"""Oracle: checks decisions against R2, R4 and R5, counted again from the views in simple code."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.api import keys
from everynode.api.daemonset import IntOrPercent
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.inplace.state import read_state, started_at
from everynode.decide.node.availability import available_at
from everynode.decide.plan import Plan
from everynode.decide.pods.lifecycle import is_hooked, is_preparing
from everynode.decide.view import NodeView, WriteKind
from tests.support.fleet import is_ready


def amount(given: IntOrPercent, total: int, *, up: bool) -> int:
    if not given.percent:
        return given.value
    return -(-given.value * total // 100) if up else given.value * total // 100


def is_begun(pod: Pod) -> bool:
    """Whether the pod was taken out of service earlier; its next steps cost no budget."""
    gate = pod.condition(keys.INPLACE_UPDATE_READY)
    return gate is not None and gate.status != "True"


class Referee:
    """The nodes of a DaemonSet at one reconcile; a node is eligible unless it has a taint."""

    def __init__(self, plan: Plan, views: Sequence[NodeView], now: float) -> None:
        self.plan, self.now = plan, now
        self.views = {view.name: view for view in views if view.node is not None}
        self.wanted = {n for n, v in self.views.items() if v.node and not v.node.spec.taints}
        strategy = plan.ds.strategy
        desired = len(self.wanted)
        self.surge = amount(strategy.max_surge, desired, up=True)
        self.limit = amount(strategy.max_unavailable, desired, up=True)
        if self.limit == 0 and self.surge == 0:
            self.limit = 1
        self.cut = desired - amount(strategy.partition, desired, up=False)
        self.holders = {n for n, v in self.views.items() if self._holds_target(v)}
        self.scope = self._scope()

    def _holds_target(self, view: NodeView) -> bool:
        coming = [w.revision for w in view.writes if w.kind is WriteKind.CREATE]
        return self.plan.target_hash in coming or any(self.plan.is_at_target(p) for p in view.pods)

    def _scope(self) -> set[str]:
        strategy = self.plan.ds.strategy
        if not self.plan.rolling:
            return set(self.views)
        if strategy.paused:
            return set(self.holders)
        selected = sorted(
            n for n, v in self.views.items() if v.node and self.plan.selects(v.node.metadata.labels)
        )
        if strategy.partition.value == 0:
            return self.holders | set(selected)
        room = max(0, self.cut - len(self.holders & self.wanted))
        waiting = [n for n in selected if n in self.wanted and n not in self.holders]
        return self.holders | set(waiting[max(0, len(waiting) - room) :])

    # --- The state of nodes ------------------------------------------------------------------

    def staying(self, name: str) -> list[Pod]:
        return [
            pod
            for pod in self.views[name].pods
            if not pod.terminating and not pod.finished and not is_preparing(pod)
        ]

    def is_up(self, name: str, pod: Pod, taken: set[str]) -> bool:
        touched = {write.uid for write in self.views[name].writes} | taken
        if pod.terminating or pod.finished or is_preparing(pod):
            return False
        since = available_at(pod, self.plan.min_ready_seconds)
        return pod.uid not in touched and since is not None and since <= self.now

    def is_down(self, name: str, taken: set[str]) -> bool:
        return not any(self.is_up(name, pod, taken) for pod in self.staying(name))

    def is_proven(self, name: str) -> bool:
        mine = [pod for pod in self.staying(name) if self.plan.is_at_target(pod)]
        return any(self.is_up(name, pod, set()) for pod in mine)

    def is_under_way(self, name: str, taken: set[str]) -> bool:
        if any(pod.uid in taken for pod in self.views[name].pods) or not self.staying(name):
            return True
        for pod in self.staying(name):
            if self.plan.is_at_target(pod) and not self.is_up(name, pod, taken):
                state = read_state(pod)
                changed = (started_at(state) if state else None) or 0.0
                came = max(seconds(pod.metadata.creation_timestamp) or 0.0, changed)
                if self.now < came + self.plan.min_ready_seconds + 300:
                    return True
        return False

    def counted(self, limit: int) -> set[str]:
        mine = self.scope & self.wanted
        silent = {n for n in mine if (v := self.views[n]).node and v.node.ready == "Unknown"}
        outage = len(silent) > max(limit, len(self.wanted) // 10)
        return mine if outage else mine - silent

    def kept(self) -> set[str]:
        """Return the reachable nodes in scope that may keep their pod but should not get one."""
        others = {n: self.views[n].node for n in self.scope - self.wanted}
        return {n for n, node in others.items() if node and node.ready != "Unknown"}

    # --- Checks ------------------------------------------------------------------------------

    def taken(self, actions: Sequence[PodAction]) -> list[tuple[str, Pod]]:
        """Return the pods that the actions take out of service for the update, with their nodes."""
        found = []
        for action in actions:
            if isinstance(action, CreatePod) or action.node not in self.views:
                continue
            marked = isinstance(action, PatchPod) and action.cause in (
                Cause.HOOK,
                Cause.IN_PLACE,
            )
            deleted = isinstance(action, DeletePod) and action.cause is Cause.UPDATE
            if marked or deleted:
                found += [
                    (action.node, pod)
                    for pod in self.staying(action.node)
                    if pod.uid == action.uid
                    and not (marked and (self.plan.is_at_target(pod) or is_begun(pod)))
                ]
        return found

    def check_scope(self, actions: Sequence[PodAction]) -> None:
        """R2: no held node is updated, and no more nodes are updated than the partition allows."""
        for name, _ in self.taken(actions):
            assert name in self.scope, f"{name} is held and was taken"
        created = [each for each in actions if isinstance(each, CreatePod)]
        moved = {c.node for c in created if c.revision == self.plan.target_hash}
        if not self.plan.first_install:
            assert moved <= self.scope, f"{moved - self.scope} are held and got the target"
        if self.plan.rolling and not self.plan.first_install:
            updated = (self.holders | moved) & self.wanted
            assert len(updated) <= max(self.cut, len(self.holders & self.wanted))

    def check_surge(self, actions: Sequence[PodAction]) -> None:
        """R5: a node gets a second pod only if at most maxSurge nodes then have two."""
        created = [each.node for each in actions if isinstance(each, CreatePod)]
        doubled = []
        for name, view in self.views.items():
            coming = sum(w.kind is WriteKind.CREATE for w in view.writes) + created.count(name)
            running = sum(not pod.finished for pod in view.pods)
            silent = view.node is not None and view.node.ready == "Unknown"
            if coming + running > 1 and not silent:
                doubled.append(name)
        if set(doubled) & set(created):
            assert len(doubled) <= self.surge, f"{doubled} have two pods, {self.surge} may"

    def check_hooks(self, actions: Sequence[PodAction]) -> None:
        """No pod is deleted while its hook holds it."""
        for each in actions:
            if isinstance(each, DeletePod) and each.node in self.views:
                pod = next(pod for pod in self.views[each.node].pods if pod.uid == each.uid)
                assert not is_hooked(pod, self.plan.hook), f"{pod.name} was deleted past its hook"

    def check_spares(self, actions: Sequence[PodAction]) -> None:
        """An available pod is deleted as duplicate only if its node keeps another one."""
        gone = {each.uid for each in actions if isinstance(each, DeletePod)}
        for each in actions:
            spare = each.cause in (Cause.SURGED, Cause.DUPLICATE)
            if spare and isinstance(each, DeletePod) and not self.is_down(each.node, set()):
                assert not self.is_down(each.node, gone), f"{each.node} lost its last pod"

    def check_budget(self, actions: Sequence[PodAction]) -> None:
        """R4 and R5: after the actions no more nodes are down or under way than allowed."""
        taken = self.taken(actions)
        uids = {pod.uid for _, pod in taken}
        limit = self.surge if self.plan.surging else self.limit
        counted = self.counted(limit)
        ready = [(n, p) for n, p in taken if is_ready(p)]
        if self.plan.surging:
            bare = [n for n, _ in ready if self.is_down(n, uids)]
            assert not bare, f"Ready pods of {bare} were taken without a successor"
        elif ready:
            down = {name for name in counted if self.is_down(name, uids)}
            assert len(down) <= self.limit, f"{sorted(down)} are down, {self.limit} may be"
        if len(taken) > len(ready):
            under_way = {name for name in counted if self.is_under_way(name, uids)}
            proven = {name for name in counted | self.kept() if self.is_proven(name)}
            bound = max(limit, len(proven))
            assert len(under_way) <= max(bound, len(ready)), f"{sorted(under_way)} > {bound}"
        silent = [n for n, _ in taken if (v := self.views[n]).node and v.node.ready == "Unknown"]
        assert not silent, f"pods of silent nodes {silent} were taken"
