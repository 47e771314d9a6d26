"""S1e: no pod is taken on a node that has no room for its successor.

The check keeps, for a while, what the pods of each node requested. A pod whose successor requests
more may be taken if there was room for it when the controller last listed the node's pods. Without
such a list, a moment with room within the last minute is enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, Final

import msgspec

from everynode.api.objects import Pod
from everynode.api.resources import PODS, add_amounts, missing_room, parse_amounts, pod_requests
from everynode.api.resources import RequestingSpec as Spec
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import Oracle, is_preparing
from everynode.sim.checks.possible_views import (
    TooManyViews,
    disrupted_pod,
    owner_uid,
    pods_on_node,
    possible_views,
)
from everynode.sim.checks.refused_target import is_in_the_way
from everynode.sim.checks.withdrawn import is_withdrawn
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, RecordedNode, RecordedRequest, WorldRecord

# How long a decision may lag behind what it rests on: an observation is used for 10 seconds, and a
# process may be paused for 45 before it decides.
_WINDOW: Final = 60.0
_NODE_FIELD: Final = "spec.nodeName="
_Taken = Mapping[str, Mapping[str, int]]  # what the pods of a node request, by uid


class _Template(msgspec.Struct, frozen=True):
    spec: Spec = Spec()


@lru_cache(maxsize=4096)
def _template_requests(template: bytes) -> dict[str, int]:
    return pod_requests(msgspec.json.decode(template, type=_Template).spec)


def _requests(pod: Pod) -> dict[str, int]:
    parts = [parse_amounts(each.resources.requests) for each in pod.spec.containers]
    return add_amounts([*parts, {PODS: 1}])


class RoomForSuccessor(Check):
    """Remembers what the pods of each node requested in the last minute."""

    id: ClassVar[str] = "S1e"
    title: ClassVar[str] = "no pod is taken on a node that has no room for its successor"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True
    observed_kinds: ClassVar[tuple[str, ...]] = ("pods",)

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._past: dict[str, deque[tuple[float, _Taken]]] = {}  # by node, oldest first
        self._listed: dict[tuple[str, str], float] = {}  # when, by process and node
        record.on_request.append(self._note_list)

    def observe(self, commit: Commit) -> None:
        """Note what the pods of the node request now."""
        pod = commit.after or commit.before
        if pod is None or not pod.spec.node_name:
            return
        node, cluster = pod.spec.node_name, self.record.cluster
        bound = {
            each.uid: _requests(each)
            for each in pods_on_node(cluster, node)
            if each.spec.node_name and not each.finished
        }
        past = self._past.setdefault(node, deque())
        if past and past[-1][1] == bound:
            return
        past.append((commit.time, bound))
        while len(past) > 1 and past[1][0] < commit.time - 2 * _WINDOW:
            past.popleft()

    def _note_list(self, cause: RecordedRequest, status: int) -> None:
        request = cause.request
        if request.method != "GET" or status != 200 or not request.path.endswith("/pods"):
            return
        fields = dict(request.query).get("fieldSelector", "")
        if fields.startswith(_NODE_FIELD):
            node = fields.removeprefix(_NODE_FIELD).partition(",")[0]
            self._listed[cause.actor, node] = cause.time

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that is taken for another version, or that comes beside an old one."""
        pod = disrupted_pod(commit)
        if pod is not None and commit.after is not None and _is_kept(commit.after):
            return  # it is updated in place
        created = commit.after if commit.before is None else None
        subject = pod or created
        if subject is None or owner_uid(subject) not in self.record.cluster.sets:
            return
        try:
            for cluster, _ in possible_views(self.record, commit):
                ds = cluster.sets.get(owner_uid(subject))
                if ds is None or (pod is not None and pod.uid not in cluster.pods):
                    continue
                assert commit.cause is not None
                oracle = Oracle(cluster, ds, commit.cause.evaluated_at)
                if pod is None:
                    if self._may_come_beside(oracle, commit, subject):
                        return
                elif self._may_be_taken(oracle, commit, pod):
                    return
        except TooManyViews:
            return
        what = "taken" if pod is not None else "created beside another pod"
        yield f"{subject.name} was {what} on {subject.node}, which has no room"

    def _may_be_taken(self, oracle: Oracle, commit: Commit, pod: Pod) -> bool:
        before = oracle.templates.get(pod.hash)
        if before is None or oracle.at_target(pod) or is_in_the_way(oracle, pod):
            return True
        if is_withdrawn(oracle, pod):
            return True  # nothing follows it
        old, new = _template_requests(before), _template_requests(oracle.ds.template)
        if all(amount <= old.get(name, 0) for name, amount in new.items()):
            return True
        return self._had_room(oracle.cluster, commit, pod.node, new, pod.uid)

    def _may_come_beside(self, oracle: Oracle, commit: Commit, created: Pod) -> bool:
        node = created.node
        beside = [
            each
            for each in oracle.pods_on(node)
            if not each.finished and not each.terminating and each.uid != created.uid
        ]
        if not oracle.surging or not beside:
            return True
        new = {**_template_requests(oracle.ds.template), PODS: 1}
        return self._had_room(oracle.cluster, commit, node, new, "")

    def _had_room(
        self,
        cluster: ClusterState,
        commit: Commit,
        node: str,
        wanted: Mapping[str, int],
        gives_way: str,
    ) -> bool:
        found = cluster.nodes.get(node)
        assert found is None or isinstance(found, RecordedNode)
        allocatable = parse_amounts(found.status.allocatable) if found is not None else {}
        if not allocatable:
            return True
        for taken in self._states(commit, node):
            others = [amounts for uid, amounts in taken.items() if uid != gives_way]
            if not missing_room(allocatable, add_amounts(others), wanted):
                return True
        return False

    def _states(self, commit: Commit, node: str) -> Iterator[_Taken]:
        """What the pods requested when the process listed them, or at any time in the window."""
        past = self._past.get(node, deque())
        listed = self._listed.get((commit.actor, node))
        since = commit.time - _WINDOW
        if listed is not None and listed >= since:
            since, until = listed, listed
        else:
            until = commit.time
        times = [time for time, _ in past]
        for index, (time, taken) in enumerate(past):
            ends = times[index + 1] if index + 1 < len(times) else commit.time + 1.0
            if time <= until and ends >= since:
                yield taken
        if not times or times[0] > since:
            yield {}


def _is_kept(pod: Pod) -> bool:
    return not pod.terminating and not is_preparing(pod)
