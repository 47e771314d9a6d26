"""Taint eviction: deletes pods that do not, or no longer, tolerate a NoExecute taint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from everynode.api.objects import Taint
from everynode.api.taints import NO_EXECUTE, tolerates
from everynode.components.events import EventRecorder, InvolvedObject
from everynode.components.informers import BY_NODE, SharedInformers
from everynode.components.kubelet.node import SimulationSettings
from everynode.components.objects import FullNode, FullPod, TimedToleration
from everynode.components.request_queue import RequestQueue, RequestResult, ignore_result
from everynode.components.scheduler.filters import taints_of
from everynode.components.scheduler.scheduler import disruption_condition, status_patch
from everynode.components.timers import NEVER, Timers
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.resources import PODS

COMPONENT: Final = "taint-eviction-controller"
_RETRY: Final = 1.0


class TaintEvictionController:
    """Deletes pods because of NoExecute taints, at once or after their tolerationSeconds."""

    def __init__(
        self,
        informers: SharedInformers,
        settings: SimulationSettings,
        *,
        timers: Timers,
        requests: RequestQueue,
        recorder: EventRecorder,
    ) -> None:
        self._informers = informers
        self._settings = settings
        self._timers = timers
        self._requests = requests
        self._recorder = recorder
        # NoExecute taints by node, only of nodes that have some.
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._scheduled: dict[str, tuple[float, float]] = {}  # pod uid -> tainted since, deleted at
        informers.nodes.subscribe(self._on_node)
        informers.pods.subscribe(self._on_pod)

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        known = after or before
        if known is None:
            return
        taints = () if after is None else _no_execute_taints(after)
        if taints == self._taints.get(known.name, ()):
            return
        if taints:
            self._taints[known.name] = taints
        else:
            del self._taints[known.name]
        for pod in list(self._informers.pods.by(BY_NODE, known.name).values()):
            self._schedule_eviction(pod, taints)

    def _on_pod(self, before: FullPod | None, after: FullPod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._scheduled.pop(before.uid, None)
        if after is not None and after.spec.node_name in self._taints:
            self._schedule_eviction(after, self._taints[after.spec.node_name])

    def _schedule_eviction(self, pod: FullPod, taints: Sequence[Taint]) -> None:
        seconds = tolerated_seconds(taints, pod.spec.tolerations)
        if seconds == NEVER or pod.terminating:
            if self._scheduled.pop(pod.uid, None) is not None and not pod.terminating:
                self._record_event(pod, f"Cancelling deletion of Pod {pod.key}")
            return
        since, end = self._scheduled.get(pod.uid, (self._timers.now(), -1.0))
        until = since + self._settings.behaviour.scaled(seconds)
        if until != end:
            self._scheduled[pod.uid] = (since, until)
            self._timers.call_at(until, partial(self._evict, pod.key, pod.uid, until))

    def _evict(self, key: str, uid: str, until: float) -> None:
        pod = self._informers.pods.get(key)
        if pod is None or pod.uid != uid or self._scheduled.get(uid, (0.0, -1.0))[1] != until:
            return
        self._record_event(pod, f"Marking for deletion Pod {key}")
        text = "Taint manager: deleting due to NoExecute taint"
        condition = disruption_condition("DeletionByTaintManager", text, self._settings.clock.now())
        self._requests.send(status_patch(pod, {"conditions": [condition]}), ignore_result)
        meta = pod.metadata
        removal = verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=uid)
        self._requests.send(removal, partial(self._on_deleted, key, uid, until))

    def _on_deleted(self, key: str, uid: str, until: float, result: RequestResult) -> None:
        if isinstance(result, KubeError) and not isinstance(result, NotFound | Conflict):
            self._timers.call_later(_RETRY, partial(self._evict, key, uid, until))

    def _record_event(self, pod: FullPod, message: str) -> None:
        meta = pod.metadata
        involved = InvolvedObject("Pod", meta.name, meta.namespace, uid=meta.uid)
        self._recorder.record(involved, "TaintManagerEviction", message, component=COMPONENT)


def tolerated_seconds(taints: Sequence[Taint], tolerations: Sequence[TimedToleration]) -> float:
    """Simulated seconds a pod tolerates these taints; NEVER (infinity) if without limit."""
    shortest = NEVER
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return 0.0
        for each in matching:
            if each.toleration_seconds is not None:
                shortest = min(shortest, max(0.0, float(each.toleration_seconds)))
    return shortest


def _no_execute_taints(node: FullNode) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints_of(node) if taint.effect == NO_EXECUTE)
