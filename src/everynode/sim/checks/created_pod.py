"""S3, S4, S5, S7, R8: a pod that we create is complete and has the revision of its node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, RollingUpdateType, UpdateStrategyType
from everynode.api.objects import Pod, Toleration
from everynode.api.taints import find_untolerated_taint
from everynode.kube.requests import Request
from everynode.sim.checks.check import Check
from everynode.sim.checks.converged import pod_containers
from everynode.sim.checks.last_pods import OBSERVED, LastPods
from everynode.sim.checks.oracle import (
    Oracle,
    canonical_template,
    is_true,
    node_fit,
    template_containers,
)
from everynode.sim.checks.possible_views import (
    TooManyViews,
    owner_uid,
    pods_on_node,
    possible_views,
)
from everynode.sim.history.record import Commit, WorldRecord, request_body


class CreatedPod(Check):
    """No created pod updates a held node; none lacks owner, hash or node."""

    id: ClassVar[str] = "S3"
    title: ClassVar[str] = "a held node comes back as what it was"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True
    observed_kinds: ClassVar[tuple[str, ...]] = OBSERVED

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._last_pods = LastPods(record)

    def observe(self, commit: Commit) -> None:
        """Note the pods that nodes had last."""
        self._last_pods.observe(commit)

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that was created."""
        if commit.type != "ADDED":
            return
        pod: Pod = commit.after
        if "everynode.io/puller" in pod.metadata.labels:
            return
        if not owner_uid(pod) or not pod.hash or not pod.node:
            yield f"S7: {pod.name} lacks its owner, its hash or its node"
            return
        if pod.metadata.annotations.replaced_sick and not self._replaces_sick(pod):
            yield f"S1: {pod.name} says that it replaces a sick pod, but that was Ready"
        try:
            fault = self._fault(commit, pod)
        except TooManyViews:
            return
        if fault:
            promise, _, why = fault.rpartition(": ")
            what = f"{pod.name} of {pod.hash} was created on {pod.node}: {why}"
            yield f"{promise}: {what}" if promise else what

    def _replaces_sick(self, pod: Pod) -> bool:
        """Whether the pod removed last from the node was not Ready, or replaced such a pod.

        One that is still there, finished, may have been adopted with its note.
        """
        for there in pods_on_node(self.record.states[-2], pod.node):
            noted = there.metadata.annotations.replaced_sick == pod.hash
            if noted and owner_uid(there) == owner_uid(pod):
                return True
        for commit in reversed(self.record.commits):
            before, after = commit.before, commit.after
            if commit.kind != "pods" or before is None or before.node != pod.node:
                continue
            if owner_uid(before) != owner_uid(pod) or before.terminating:
                continue
            if before.metadata.annotations.replaced_sick == pod.hash:
                return True
            if after is None or after.terminating:
                return not is_true(before, keys.READY)
        return False

    def _fault(self, commit: Commit, pod: Pod) -> str:
        assert commit.cause is not None
        first, node = "", pod.node
        for cluster, version in possible_views(self.record, commit):
            ds = cluster.sets.get(owner_uid(pod))
            if ds is None or node not in cluster.nodes:
                first = first or "S7: its node or its DaemonSet is not there"
                continue
            oracle = self._last_pods.oracle(cluster, ds, commit, version)
            last, sure = self._last_pods.of(ds.uid, node, commit.actor, version)
            held_at = held_templates(oracle, node, last, sure=sure)
            if pod.hash in self.record.forged:
                forged = {oracle.templates.get(each) for each in self.record.forged}
                held_at = [each for each in held_at if each not in forged]
                fault = _check_forged(oracle, pod, held_at)
            else:
                fault = why_not_create(oracle, pod, held_at)
            fault = fault or _check_tolerations(oracle, node, commit.cause.request)
            fault = fault or _check_gates(ds, oracle.templates.get(pod.hash), pod)
            if not fault:
                return ""
            first = first or fault
        return first


def held_templates(oracle: Oracle, node: str, last: list[Pod], *, sure: bool) -> list[bytes]:
    """The templates that the node may have if it is held (R3).

    If it is empty, that of the last pod that the controller knows, and unless it certainly knows
    one, what is for nodes of which nothing is known.
    """
    if any(pod.hash in oracle.templates for pod in oracle.pods_on(node)):
        return [oracle.held_template(node)]
    found = [oracle.template_of(pod) for pod in last]
    known = [template for template in found if template is not None]
    if not sure or len(known) < len(found):
        known.append(oracle.fallback_template)
    return known


def _check_forged(oracle: Oracle, pod: Pod, held_at: list[bytes]) -> str:
    """A pod of a forged revision must match the DaemonSet's template, not the revision."""
    wanted = [oracle.node_template(pod.node), *held_at]
    if pod_containers(pod) not in map(template_containers, wanted):
        return "it runs what was forged into its revision"
    return ""


def why_not_create(oracle: Oracle, pod: Pod, held_at: list[bytes]) -> str:
    """Why this pod may not be created in this state; empty if it may.

    `held_at` are the templates that its node may have if it is held.
    """
    node = pod.node
    template = oracle.templates.get(pod.hash)
    if template is None:
        return "S8: its revision is not stored"
    if not node_fit(template).should_run(oracle.cluster.nodes[node]):
        return "S7: the node should not have it"
    in_scope = oracle.unrestricted or node in oracle.scope
    allowed = [oracle.ds.template] if in_scope else []
    allowed += held_at if not in_scope or oracle.may_be_held(node) else []
    if canonical_template(template) not in map(canonical_template, allowed):
        return "the node lives by another revision"
    if oracle.holds_back(node):
        return "R8: the first installation has not come to the node yet"
    waiting = [each for each in oracle.staying(node) if each.hash == pod.hash]
    return "S2: the node has one already" if waiting else ""


def _check_gates(ds: DaemonSet, template: bytes | None, pod: Pod) -> str:
    """The pod has the readiness gates that are used, and no others: each costs a write."""
    spec = msgspec.json.decode(template or b"{}").get("spec") or {}
    used = {gate["conditionType"] for gate in spec.get("readinessGates") or ()}
    rolling = ds.strategy.type is UpdateStrategyType.ROLLING
    if rolling and ds.strategy.rolling is RollingUpdateType.IN_PLACE:
        used.add(keys.INPLACE_UPDATE_READY)
    if ds.pre_delete is not None and ds.pre_delete.mark_not_ready:
        used.add(keys.KRUISE_POD_READY)
    found = {gate.condition_type for gate in pod.spec.readiness_gates}
    return "" if found == used else f"L3: its readiness gates are {sorted(found)}"


def _check_tolerations(oracle: Oracle, node: str, request: Request) -> str:
    """The pod has the tolerations to run on its node, also when the node is cordoned."""
    taints = oracle.cluster.nodes[node].spec.taints
    if not taints:
        return ""
    given = (request_body(request).get("spec") or {}).get("tolerations") or []
    tolerations = msgspec.convert(given, tuple[Toleration, ...])
    taint = find_untolerated_taint(taints, tolerations)
    return f"S7: it does not tolerate {taint.key}" if taint is not None else ""
