"""S3, S4, S5, S7, R8: a pod that we create is complete, and what its node lives by at that time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from everynode.api.objects import Pod, Toleration
from everynode.api.taints import untolerated
from everynode.kube.requests import Request
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import Referee, meaning, node_of, wants
from everynode.sim.invariants.views import Doubt, owner_uid, views
from everynode.sim.record import Commit, body_of


class RightRevision(Invariant):
    """No created pod moves a held node; none lacks owner, hash or node."""

    id: ClassVar[str] = "S3"
    title: ClassVar[str] = "a held node comes back as what it was"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a pod that was created."""
        if commit.type != "ADDED":
            return
        pod: Pod = commit.after
        if "everynode.io/puller" in pod.metadata.labels:
            return
        if not owner_uid(pod) or not pod.hash or not node_of(pod):
            yield f"S7: {pod.name} lacks its owner, its hash or its node"
            return
        try:
            fault = self._fault(commit, pod)
        except Doubt:
            return
        if fault:
            promise, _, why = fault.rpartition(": ")
            what = f"{pod.name} of {pod.hash} was created on {node_of(pod)}: {why}"
            yield f"{promise}: {what}" if promise else what

    def _fault(self, commit: Commit, pod: Pod) -> str:
        assert commit.asked is not None
        first, node = "", node_of(pod)
        for scene, _ in views(self.record, commit):
            ds = scene.sets.get(owner_uid(pod))
            if ds is None or node not in scene.nodes:
                first = first or "S7: its node or its DaemonSet is not there"
                continue
            referee = Referee(scene, ds, commit.asked.now)
            fault = _judge(referee, pod) or _judge_tolerations(referee, node, commit.asked.request)
            if not fault:
                return ""
            first = first or fault
        return first


def _judge(referee: Referee, pod: Pod) -> str:
    node = node_of(pod)
    template = referee.templates.get(pod.hash)
    if template is None:
        return "S8: its revision is not stored"
    if not wants(template).runs(referee.scene.nodes[node]):
        return "S7: the node should not have it"
    if meaning(template) != meaning(referee.life(node)):
        held = referee.may_be_held(node) and meaning(template) == meaning(referee.held(node))
        if not held:
            return "the node lives by another revision"
    if referee.withholds(node):
        return "R8: the first installation has not come to the node yet"
    waiting = [each for each in referee.staying(node) if each.hash == pod.hash]
    return "S2: the node has one already" if waiting else ""


def _judge_tolerations(referee: Referee, node: str, request: Request) -> str:
    """A pod that a node should have can get there, also when the node is cordoned."""
    taints = referee.scene.nodes[node].spec.taints
    if not taints:
        return ""
    given = (body_of(request).get("spec") or {}).get("tolerations") or []
    tolerations = msgspec.convert(given, tuple[Toleration, ...])
    taint = untolerated(taints, tolerations)
    return f"S7: it does not tolerate {taint.key}" if taint is not None else ""
