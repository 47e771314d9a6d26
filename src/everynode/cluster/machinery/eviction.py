"""Removing pods from nodes whose NoExecute taints they do not, or no longer, tolerate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from everynode.api.objects import Taint
from everynode.api.taints import NO_EXECUTE, tolerates
from everynode.cluster.machinery.events import Recorder, Subject
from everynode.cluster.machinery.filters import taints_of
from everynode.cluster.machinery.objects import Node, Pod, TimedToleration
from everynode.cluster.machinery.scheduler import disruption, status_patch
from everynode.cluster.machinery.seats import Setting
from everynode.cluster.machinery.shared import NODE, Shared
from everynode.cluster.machinery.timers import NEVER, Timers
from everynode.cluster.machinery.writes import Answer, Writes, ignore
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.resources import PODS

COMPONENT: Final = "taint-eviction-controller"
_RETRY: Final = 1.0


class TaintEviction:
    """Deletes pods that a NoExecute taint drives away, at once or after their time."""

    def __init__(
        self,
        shared: Shared,
        setting: Setting,
        *,
        timers: Timers,
        writes: Writes,
        recorder: Recorder,
    ) -> None:
        self._shared = shared
        self._setting = setting
        self._timers = timers
        self._writes = writes
        self._recorder = recorder
        self._tainted: dict[str, tuple[Taint, ...]] = {}  # by node, only where there are any
        self._doomed: dict[str, tuple[float, float]] = {}  # pod uid -> since when, until when
        shared.nodes.subscribe(self._on_node)
        shared.pods.subscribe(self._on_pod)

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        known = after or before
        if known is None:
            return
        taints = () if after is None else _evicting(after)
        if taints == self._tainted.get(known.name, ()):
            return
        if taints:
            self._tainted[known.name] = taints
        else:
            del self._tainted[known.name]
        for pod in list(self._shared.pods.by(NODE, known.name).values()):
            self._judge(pod, taints)

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._doomed.pop(before.uid, None)
        if after is not None and after.spec.node_name in self._tainted:
            self._judge(after, self._tainted[after.spec.node_name])

    def _judge(self, pod: Pod, taints: Sequence[Taint]) -> None:
        seconds = patience(taints, pod.spec.tolerations)
        if seconds == NEVER or pod.terminating:
            if self._doomed.pop(pod.uid, None) is not None and not pod.terminating:
                self._tell(pod, f"Cancelling deletion of Pod {pod.key}")
            return
        since, end = self._doomed.get(pod.uid, (self._timers.now(), -1.0))
        until = since + self._setting.behaviour.scaled(seconds)
        if until != end:
            self._doomed[pod.uid] = (since, until)
            self._timers.at(until, partial(self._evict, pod.key, pod.uid, until))

    def _evict(self, key: str, uid: str, until: float) -> None:
        pod = self._shared.pods.get(key)
        if pod is None or pod.uid != uid or self._doomed.get(uid, (0.0, -1.0))[1] != until:
            return
        self._tell(pod, f"Marking for deletion Pod {key}")
        text = "Taint manager: deleting due to NoExecute taint"
        condition = disruption("DeletionByTaintManager", text, self._setting.clock.now())
        self._writes.send(status_patch(pod, {"conditions": [condition]}), ignore)
        meta = pod.metadata
        removal = verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=uid)
        self._writes.send(removal, partial(self._evicted, key, uid, until))

    def _evicted(self, key: str, uid: str, until: float, answer: Answer) -> None:
        if isinstance(answer, KubeError) and not isinstance(answer, NotFound | Conflict):
            self._timers.after(_RETRY, partial(self._evict, key, uid, until))

    def _tell(self, pod: Pod, message: str) -> None:
        meta = pod.metadata
        subject = Subject("Pod", meta.name, meta.namespace, uid=meta.uid)
        self._recorder.record(subject, "TaintManagerEviction", message, component=COMPONENT)


def patience(taints: Sequence[Taint], tolerations: Sequence[TimedToleration]) -> float:
    """Simulated seconds a pod may stay on a node with these taints; NEVER ends for some."""
    shortest = NEVER
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return 0.0
        for each in matching:
            if each.toleration_seconds is not None:
                shortest = min(shortest, max(0.0, float(each.toleration_seconds)))
    return shortest


def _evicting(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints_of(node) if taint.effect == NO_EXECUTE)
