"""S1d: a version that the API server refuses costs no pod.

The check remembers of which revisions the API server has accepted a pod, in a dry run or for good.
A pod that is disrupted for a revision of which none was ever accepted breaks the promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import OwnerReference, Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import Oracle, node_fit
from everynode.sim.checks.possible_views import (
    TooManyViews,
    disrupted_pod,
    owner_uid,
    possible_views,
)
from everynode.sim.checks.withdrawn import is_withdrawn
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, RecordedRequest, WorldRecord

_HTTP_CREATED: Final = 201
_EXISTS: Final = 409  # the name is taken: admission has accepted the pod before
_QUOTA: Final = "quota"  # the simulated quota has room once the old pod is gone


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    labels: dict[str, Any] | None = None
    owner_references: list[OwnerReference] | None = None


class _Body(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode: Final = msgspec.json.Decoder(_Body).decode


class RefusedTarget(Check):
    """Remembers the revisions of which a pod was accepted, by the uid of their DaemonSet."""

    id: ClassVar[str] = "S1d"
    title: ClassVar[str] = "a version whose pods the API server refuses takes no pod"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._accepted: set[tuple[str, str]] = set()
        record.on_request.append(self._note_answer)

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that is disrupted for another version."""
        pod = disrupted_pod(commit)
        if pod is None or owner_uid(pod) not in self.record.cluster.sets:
            return
        try:
            justified = any(
                self._justifies(cluster, commit, pod)
                for cluster, _ in possible_views(self.record, commit)
            )
        except TooManyViews:
            return
        if not justified:
            yield f"{pod.name} was taken for a version of which no pod was ever accepted"

    def _note_answer(self, cause: RecordedRequest, status: int) -> None:
        request = cause.request
        if request.method != "POST" or not request.path.endswith("/pods"):
            return
        if status not in (_HTTP_CREATED, _EXISTS) and cause.refused_by != _QUOTA:
            return
        metadata = _decode(request.body).metadata
        hash = (metadata.labels or {}).get(keys.REVISION_HASH, "")
        for owner in metadata.owner_references or ():
            self._accepted.add((owner.uid, hash))

    def _justifies(self, cluster: ClusterState, commit: Commit, pod: Pod) -> bool:
        """Whether this view gives a reason to disrupt the pod."""
        assert commit.cause is not None
        ds = cluster.sets.get(owner_uid(pod))
        if ds is None or pod.uid not in cluster.pods:
            return False
        oracle = Oracle(cluster, ds, commit.cause.evaluated_at)
        if is_in_the_way(oracle, pod):
            return True
        if oracle.at_target(pod):  # it is recreated only where its update in place has failed
            return bool(pod.metadata.annotations.inplace_state)
        if is_withdrawn(oracle, pod) and not oracle.desired_nodes & oracle.scope:
            return True  # nothing follows it, and no node has a use for a pod of the target
        if any((ds.uid, hash) in self._accepted for hash in oracle.targets):
            return True
        return any(oracle.at_target(each) for pods in oracle.pods.values() for each in pods)


def is_in_the_way(oracle: Oracle, pod: Pod) -> bool:
    """Whether the pod would be deleted without any update: misplaced, or a duplicate."""
    node = oracle.cluster.nodes.get(pod.node)
    if node is None or not node_fit(oracle.node_template(node.name)).may_stay(node):
        return True
    return any(each.uid != pod.uid for each in oracle.staying(node.name))
