"""Decisions checked by the simulator's oracle (sim/checks/oracle.py).

A decision comes from the views of nodes; the oracle reads stored objects. So the views are turned
into a cluster state, and every action of the decision is checked as the simulator would check the
write that it causes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from everynode.api import keys
from everynode.api.objects import ControllerRevision, ObjectMeta, OwnerReference, Pod
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView, WriteKind
from everynode.sim.checks.created_pod import held_templates, why_not_create
from everynode.sim.checks.hooks import is_held_by_hook
from everynode.sim.checks.inplace_progress import gate_closed
from everynode.sim.checks.max_unavailable import why_not_disrupt
from everynode.sim.checks.one_pod_per_node import nodes_with_two_pods
from everynode.sim.checks.oracle import Oracle, is_marked_not_ready, is_preparing
from everynode.sim.history.cluster_state import ClusterState
from tests.support.fleet import pod as make_pod


class DecisionOracle:
    """The cluster of one decision: the stored objects, and the own writes not seen yet."""

    def __init__(self, plan: Plan, views: Sequence[NodeView], now: float) -> None:
        self._plan = plan
        self._pods = {pod.uid: _owned(pod, plan) for view in views for pod in view.pods}
        self._last_pods = {view.name: view.last_pod for view in views}
        coming = [_owned(pod, plan) for view in views for pod in _coming(view)]
        nodes = {view.name: view.node for view in views if view.node is not None}
        self._cluster = ClusterState(
            version=1,
            time=now,
            nodes=nodes,
            pods={**self._pods, **{pod.uid: pod for pod in coming}},
            sets={plan.ds.uid: plan.ds},
            revisions=_revisions(plan),
        )
        remembered = frozenset(
            view.name
            for view in views
            if not view.pods and view.last_pod is not None and plan.is_at_target(view.last_pod)
        )
        self._oracle = Oracle(self._cluster, plan.ds, now, remembered)
        self._written = {write.uid for view in views for write in view.writes if write.uid}

    def check(self, actions: Sequence[PodAction]) -> None:
        """Check all actions of a decision, as if the server executed them together."""
        self._check_disruptions(actions)
        self._check_creations(actions)
        self._check_hooks(actions)

    def _check_disruptions(self, actions: Sequence[PodAction]) -> None:
        """R2, R4, R5: scope and budget allow every pod that is deleted or taken out of service."""
        taken = [pod for action in actions if (pod := self._disrupted(action)) is not None]
        disrupted = {pod.uid for pod in taken} | self._written
        removed = {
            action.uid
            for action in actions
            if isinstance(action, DeletePod)
            or (isinstance(action, PatchPod) and action.cause is Cause.HOOK)
        }
        for pod in taken:
            fault = why_not_disrupt(self._oracle, pod, disrupted, removed=pod.uid in removed)
            assert not fault, f"{pod.name}: {fault}"

    def _disrupted(self, action: PodAction) -> Pod | None:
        """The pod that the action takes out of service; None if it was out of service before."""
        pod = None if isinstance(action, CreatePod) else self._pods.get(action.uid)
        if pod is None or pod.terminating or pod.finished or is_preparing(pod):
            return None
        if isinstance(action, DeletePod):
            return None if is_marked_not_ready(pod) else pod
        starts = action.cause in (Cause.HOOK, Cause.IN_PLACE) and not gate_closed(pod)
        return pod if starts and not self._oracle.at_target(pod) else None

    def _check_creations(self, actions: Sequence[PodAction]) -> None:
        """R2, R3, R5, R8: a created pod has its node's revision, and maxSurge is kept."""
        created = [_created(each, self._plan) for each in actions if isinstance(each, CreatePod)]
        for pod in created:
            last = self._last_pods.get(pod.spec.node_name)
            known = [] if last is None else [last]
            held_at = held_templates(self._oracle, pod.spec.node_name, known, sure=last is not None)
            fault = why_not_create(self._oracle, pod, held_at)
            assert not fault, f"{pod.name}: {fault}"
        doubled = nodes_with_two_pods(self._oracle, created)
        if {pod.spec.node_name for pod in created} & set(doubled):
            limit = self._oracle.limit if self._oracle.surging else 0
            assert len(doubled) <= limit, f"{doubled} have two pods, {limit} may"

    def _check_hooks(self, actions: Sequence[PodAction]) -> None:
        """S10: no pod is deleted while its hook holds it."""
        for each in actions:
            if isinstance(each, DeletePod) and not (pod := self._pods[each.uid]).finished:
                assert not is_held_by_hook(self._plan.ds.pre_delete, pod), (
                    f"{pod.name} is held by its hook"
                )


def _owned(pod: Pod, plan: Plan) -> Pod:
    """The pod as the server stores it: with the DaemonSet as its owner."""
    owner = OwnerReference(
        api_version="apps/v1", kind="DaemonSet", name="agent", uid=plan.ds.uid, controller=True
    )
    meta = msgspec.structs.replace(pod.metadata, owner_references=(owner,))
    return msgspec.structs.replace(pod, metadata=meta)


def _coming(view: NodeView) -> Collection[Pod]:
    """The pods that were created on a node and are not in the view yet."""
    creates = [write for write in view.writes if write.kind is WriteKind.CREATE]
    return [
        make_pod(write.revision, on=view.name, name=f"coming-{view.name}-{number}", scheduled=False)
        for number, write in enumerate(creates)
    ]


def _created(action: CreatePod, plan: Plan) -> Pod:
    return _owned(make_pod(action.revision, on=action.node, name=action.name), plan)


def _revisions(plan: Plan) -> dict[str, ControllerRevision]:
    """The stored revisions; the target names the revision that it replaces."""
    source = {keys.FROM_REVISION: plan.from_hash} if plan.from_hash else {}
    owner = OwnerReference(
        api_version="apps/v1", kind="DaemonSet", name="agent", uid=plan.ds.uid, controller=True
    )
    return {
        each.name: ControllerRevision(
            metadata=ObjectMeta(
                name=each.name,
                uid=each.uid,
                labels={keys.REVISION_HASH: hash},
                annotations=source if hash == plan.target_hash else {},
                owner_references=(owner,),
            ),
            data=msgspec.Raw(b'{"spec":{"template":' + each.template + b"}}"),
        )
        for hash, each in plan.revisions.items()
    }
