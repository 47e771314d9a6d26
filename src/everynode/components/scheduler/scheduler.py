"""Scheduler: binds pending pods to nodes, and preempts pods of lower priority."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sortedcontainers import SortedList

from everynode.api.keys import SYSTEM_PRIORITIES
from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.components.events import EventRecorder, InvolvedObject
from everynode.components.guard import log_errors
from everynode.components.informers import SharedInformers
from everynode.components.objects import FullNode, FullPod
from everynode.components.request_queue import RequestQueue, RequestResult, ignore_result
from everynode.components.scheduler import preemption
from everynode.components.scheduler.filters import (
    NOT_THE_PINNED_NODE,
    Diagnosis,
    NodeInfo,
    PodInfo,
    filter_node,
    least_allocated,
)
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import PODS

Object = dict[str, Any]

_LOG: Final = logging.getLogger(__name__)
SCHEDULER_NAME: Final = "default-scheduler"
_YIELD_EVERY: Final = 64  # pods scheduled before other tasks get a turn
_MAX_FEASIBLE: Final = 100  # feasible nodes after which the search ends, as in kube-scheduler
_RETRY: Final = 1.0


class Scheduler:
    """Binds pods to nodes; retries an unschedulable pod when a node it may use has changed."""

    def __init__(
        self,
        informers: SharedInformers,
        clock: Clock,
        *,
        timers: Timers,
        requests: RequestQueue,
        recorder: EventRecorder,
        priorities: Mapping[str, int] = SYSTEM_PRIORITIES,
    ) -> None:
        self._informers = informers
        self._clock = clock
        self._timers = timers
        self._requests = requests
        self._recorder = recorder
        self._priorities = priorities
        self._nodes: dict[str, NodeInfo] = {}
        self._node_names = SortedList()  # of the nodes that exist, in the order of the search
        self._search_start = 0
        self._pending: dict[str, PodInfo] = {}  # pods without a node, by uid
        self._queue: list[tuple[int, int, str]] = []
        self._queued: dict[str, None] = {}
        # Pods by their pinned node, "" for any.
        self._unschedulable: dict[str, dict[str, None]] = {}
        self._last_message: dict[str, str] = {}  # of the PodScheduled condition, by uid
        # Pod uid -> node, from the binding until the watch shows it.
        self._assumed: dict[str, str] = {}
        self._nominated: dict[str, str] = {}  # pod uid -> nominated node
        self._sequence = 0
        self._queue_filled = asyncio.Event()
        informers.nodes.subscribe(self._on_node)
        informers.pods.subscribe(self._on_pod)

        self._schedule_guarded = log_errors(self._schedule)

    async def run(self) -> None:
        """Schedule until cancelled."""
        # Before that, pods would be reported as unschedulable.
        await self._informers.wait_for_sync()
        while True:
            await self._queue_filled.wait()
            self._queue_filled.clear()
            count = 0
            while self._queue:
                _, _, uid = heapq.heappop(self._queue)
                if self._queued.pop(uid, 0) is None and uid in self._pending:
                    self._schedule_guarded(self._pending[uid])
                count += 1
                if count % _YIELD_EVERY == 0:
                    await self._clock.sleep(0)

    # --- Changes --------------------------------------------------------------------------------

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        known_node = after or before
        if known_node is None:
            return
        name = known_node.name
        node = self._nodes.setdefault(name, NodeInfo())
        known = node.api_object is not None
        node.update(after)
        if not known and after is not None:
            self._node_names.add(name)
        elif known and after is None:
            self._node_names.remove(name)
        if after is None and not node.pods:
            del self._nodes[name]
        elif after is not None and (before is None or _may_become_feasible(before, after)):
            self._retry_unschedulable(name)

    def _on_pod(self, before: FullPod | None, after: FullPod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._forget(before)
        if after is None:
            return
        if after.spec.node_name:
            self._on_bound_pod(after)
        elif after.terminating or after.spec.scheduler_name != SCHEDULER_NAME or after.finished:
            self._forget(after)
        elif not after.spec.scheduling_gates and _needs_scheduling(
            self._pending.get(after.uid), after
        ):
            self._pending[after.uid] = PodInfo(after, self._priority(after))
            self._enqueue(after.uid)

    def _on_bound_pod(self, pod: FullPod) -> None:
        """A pod is bound to a node."""
        info = self._pending.pop(pod.uid, None)
        if info is not None:
            self._forget_pending(pod.uid, info)
        name = pod.spec.node_name
        if pod.finished:
            self._release(name, pod.uid)
            return
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = NodeInfo()
        known = node.pods.get(pod.uid)
        if known is None:
            node.add_pod(info or PodInfo(pod, self._priority(pod)))
        elif known.pod.spec.containers != pod.spec.containers:
            node.remove_pod(pod.uid)
            node.add_pod(PodInfo(pod, self._priority(pod)))
            self._retry_unschedulable(name)
        else:
            known.pod = pod

    def _forget(self, pod: FullPod) -> None:
        info = self._pending.pop(pod.uid, None)
        node = pod.spec.node_name or self._assumed.get(pod.uid, "")
        if info is not None:
            self._forget_pending(pod.uid, info)
        if node:
            self._release(node, pod.uid)

    def _release(self, name: str, uid: str) -> None:
        node = self._nodes.get(name)
        if node is not None and uid in node.pods:
            node.remove_pod(uid)
            self._retry_unschedulable(name)

    def _forget_pending(self, uid: str, pod: PodInfo) -> None:
        """Forget everything about a pod that was pending."""
        self._queued.pop(uid, None)
        self._last_message.pop(uid, None)
        self._assumed.pop(uid, None)
        self._clear_nomination(uid)
        parked = self._unschedulable.get(pod.pinned_node)
        if parked is not None:
            parked.pop(uid, None)

    def _clear_nomination(self, uid: str) -> None:
        """Stop keeping room for a pod on its nominated node."""
        node = self._nodes.get(self._nominated.pop(uid, ""))
        if node is not None:
            node.nominated.pop(uid, None)

    def _retry_unschedulable(self, node: str) -> None:
        """A node has changed: queue the unschedulable pods that may run on it."""
        for where in (node, ""):
            for uid in self._unschedulable.pop(where, ()):
                self._enqueue(uid)

    def _enqueue(self, uid: str) -> None:
        if uid in self._queued or uid not in self._pending:
            return
        self._queued[uid] = None
        self._sequence += 1
        heapq.heappush(self._queue, (-self._pending[uid].priority, self._sequence, uid))
        self._queue_filled.set()

    def _priority(self, pod: FullPod) -> int:
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self._priorities.get(pod.spec.priority_class_name, 0)

    # --- Searching -------------------------------------------------------------------------------

    def _schedule(self, pod: PodInfo) -> None:
        diagnosis = Diagnosis(len(self._node_names))
        node = (
            self._search_pinned(pod, diagnosis) if pod.pinned_node else self._search(pod, diagnosis)
        )
        if node is not None and node.api_object is not None:
            self._bind(pod, node, node.api_object.name)
            return
        self._unschedulable.setdefault(pod.pinned_node, {})[pod.uid] = None
        text = self._preempt(pod, diagnosis)
        self._report_unschedulable(pod, diagnosis.message(text))

    def _search_pinned(self, pod: PodInfo, diagnosis: Diagnosis) -> NodeInfo | None:
        node = self._nodes.get(pod.pinned_node)
        if node is None or node.api_object is None:
            diagnosis.reasons[NOT_THE_PINNED_NODE] = diagnosis.total
            return None
        reasons, resolvable = filter_node(pod, node)
        if not reasons:
            return node
        diagnosis.reasons.update(reasons)
        if diagnosis.total > 1:
            diagnosis.reasons[NOT_THE_PINNED_NODE] += diagnosis.total - 1
        if resolvable:
            diagnosis.resolvable.append(pod.pinned_node)
        return None

    def _search(self, pod: PodInfo, diagnosis: Diagnosis) -> NodeInfo | None:
        feasible = []
        for offset in range(diagnosis.total):
            name = self._node_names[(self._search_start + offset) % diagnosis.total]
            node = self._nodes[name]
            reasons, resolvable = filter_node(pod, node)
            if reasons:
                diagnosis.reasons.update(reasons)
                if resolvable:
                    diagnosis.resolvable.append(name)
                continue
            feasible.append(node)
            if len(feasible) == _MAX_FEASIBLE:
                self._search_start = (self._search_start + offset + 1) % diagnosis.total
                break
        return least_allocated(feasible) if feasible else None

    # --- Writing ---------------------------------------------------------------------------------

    def _bind(self, pod: PodInfo, node: NodeInfo, node_name: str) -> None:
        node.add_pod(pod)
        self._assumed[pod.uid] = node_name
        meta = pod.pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        request = verbs.create(
            PODS, binding, namespace=meta.namespace, name=meta.name, subresource="binding"
        )
        self._requests.send(request, partial(self._on_bind_result, pod, node, node_name))

    def _on_bind_result(
        self, pod: PodInfo, node: NodeInfo, node_name: str, result: RequestResult
    ) -> None:
        if not isinstance(result, KubeError):
            text = f"Successfully assigned {pod.pod.key} to {node_name}"
            self._record_event(pod.pod, "Scheduled", text)
            return
        node.remove_pod(pod.uid)
        self._assumed.pop(pod.uid, None)
        self._retry_unschedulable(node_name)
        if isinstance(result, NotFound):
            return  # the pod is gone: the watch will show it
        if not isinstance(result, Conflict):
            _LOG.warning("%s, trying again", result)
        self._timers.call_later(_RETRY, partial(self._enqueue, pod.uid))

    def _report_unschedulable(self, info: PodInfo, message: str) -> None:
        pod = info.pod
        if self._last_message.get(pod.uid) == message:
            return
        self._last_message[pod.uid] = message
        self._record_event(pod, "FailedScheduling", message, warning=True)
        known = pod.condition("PodScheduled")
        if known is not None and (known.status, known.message) == ("False", message):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        self._requests.send(status_patch(pod, {"conditions": [condition]}), ignore_result)

    def _record_event(
        self, pod: FullPod, reason: str, message: str, *, warning: bool = False
    ) -> None:
        if not self._recorder.enabled:
            return
        meta = pod.metadata
        involved = InvolvedObject(
            "Pod", meta.name, meta.namespace, uid=meta.uid, version=meta.resource_version
        )
        self._recorder.record(involved, reason, message, component=SCHEDULER_NAME, warning=warning)

    # --- Preemption ------------------------------------------------------------------------------

    def _preempt(self, pod: PodInfo, diagnosis: Diagnosis) -> str:
        """Delete victims if that helps; the part of the message about preemption."""
        if pod.pod.spec.preemption_policy == "Never":
            return "preemption: not eligible due to preemptionPolicy=Never."
        nominated = self._nodes.get(self._nominated.get(pod.uid, ""))
        if nominated is not None and _victims_terminating(nominated, pod):
            return "preemption: not eligible due to a terminating pod on the nominated node."
        self._clear_nomination(pod.uid)
        candidate = preemption.choose_candidate(
            pod, (self._nodes[name] for name in diagnosis.resolvable)
        )
        if candidate is None:
            return diagnosis.preemption_message()
        self._nominated[pod.uid] = candidate.node
        self._nodes[candidate.node].nominated[pod.uid] = pod
        nomination = {"nominatedNodeName": candidate.node}
        self._requests.send(status_patch(pod.pod, nomination), ignore_result)
        for victim in candidate.victims:
            self._evict(victim.pod, pod.pod, candidate.node)
        return ""

    def _evict(self, victim: FullPod, preemptor: FullPod, node: str) -> None:
        text = f"{SCHEDULER_NAME}: preempting to accommodate a higher priority pod"
        condition = disruption_condition("PreemptionByScheduler", text, self._clock.now())
        self._requests.send(status_patch(victim, {"conditions": [condition]}), ignore_result)
        meta = victim.metadata
        removal = verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
        self._requests.send(removal, ignore_result)
        self._record_event(victim, "Preempted", f"Preempted by pod {preemptor.uid} on node {node}")


def _victims_terminating(node: NodeInfo, pod: PodInfo) -> bool:
    """Whether victims on the nominated node are still terminating."""
    return any(
        other.pod.terminating and other.priority < pod.priority for other in node.pods.values()
    )


def disruption_condition(reason: str, message: str, now: float) -> Object:
    """The DisruptionTarget condition of a pod that a controller deletes."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(now),
    }


def status_patch(pod: FullPod, status: Object) -> Request:
    """A patch of a pod's status; its uid is the precondition."""
    meta = pod.metadata
    return verbs.patch(
        PODS,
        meta.name,
        {"metadata": {"uid": meta.uid}, "status": status},
        kind=STRATEGIC_PATCH,
        namespace=meta.namespace,
        subresource="status",
    )


def _needs_scheduling(known: PodInfo | None, pod: FullPod) -> bool:
    """Whether a pod is new to the scheduler, or its spec has changed."""
    return known is None or known.pod.metadata.generation != pod.metadata.generation


def _may_become_feasible(before: FullNode, after: FullNode) -> bool:
    """Whether a change of a node can make a pending pod schedulable."""
    return (
        before.spec != after.spec
        or before.metadata.labels != after.metadata.labels
        or before.status.allocatable != after.status.allocatable
    )
