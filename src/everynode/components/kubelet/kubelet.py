"""Kubelet: starts, updates, stops and reports the pods of all simulated nodes."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

import msgspec

from everynode.components.kubelet.admission import (
    choose_eviction_victim,
    refuse_pod,
    refuse_resize,
)
from everynode.components.kubelet.node import SimulatedNode
from everynode.components.kubelet.pod import PodState, SimulatedPod
from everynode.components.kubelet.resize import containers_to_resize, requested_resources
from everynode.components.kubelet.status import KUBELET_CONDITIONS, Object, pod_status
from everynode.components.objects import FullPod
from everynode.components.request_queue import RequestQueue, RequestResult, resource_version_in
from everynode.components.timers import NEVER, Timers
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import PODS
from everynode.kube.watch.cache import parse_resource_version

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0  # seconds until a write that failed is tried again


class Kubelet:
    """Runs the pods of every node: one instance plays all kubelets."""

    def __init__(self, timers: Timers, requests: RequestQueue) -> None:
        self._timers = timers
        self._requests = requests

    def add_pod(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        """A pod was bound to the node, or is found there after a restart of the kubelet."""
        now = self._timers.now()
        pod.resume(now)
        is_new = pod.state is PodState.ACTIVE and pod.api_object.status.start_time is None
        refusal = refuse_pod(pod.api_object, node) if is_new else None
        node.pods[pod.uid] = pod
        if refusal is not None:
            pod.fail(now, *refusal)
            pod.record_warning(*refusal)
        elif pod.api_object.terminating:
            pod.update(pod.api_object, now)
        self._consider_resize(pod, node)
        self.sync_pod(pod, node)

    def add_running_pod(self, pod: SimulatedPod, node: SimulatedNode) -> Object | None:
        """Add a pod that counts as running already; its status, None if the node refuses it."""
        if refuse_pod(pod.api_object, node) is not None:
            return None
        pod.set_running(self._timers.now())
        node.pods[pod.uid] = pod
        status = pod_status(pod)
        pod.reported.body, pod.reported.dirty = msgspec.json.encode(status), False
        self._set_timer(pod, node)
        return status

    def update_pod(self, pod: SimulatedPod, node: SimulatedNode, api_object: FullPod) -> None:
        """A pod has changed in the API."""
        pod.update(api_object, self._timers.now())
        if not pod.reported.write_in_flight:
            self._restore_conditions(pod)
        self._consider_resize(pod, node)
        self.sync_pod(pod, node)

    def remove_pod(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        """A pod is gone from the API; resizes that waited for its resources are tried again."""
        if node.pods.pop(pod.uid, None) is None:
            return
        node.release_address(pod.ip, pod.uid)
        for other in list(node.pods.values()):
            if other.resize is not None and other.resize.reason == "Deferred":
                other.resize = None
                other.reported.dirty = True
                self._consider_resize(other, node)
                self.sync_pod(other, node)

    def evict(self, node: SimulatedNode, resource: str) -> None:
        """Evict the pod of the lowest priority from a node under pressure."""
        pod = choose_eviction_victim(node)
        if pod is None or node.stopped:
            return
        text = f"The node was low on resource: {resource}. "
        pod.fail(self._timers.now(), "Evicted", text)
        pod.record_warning("Evicted", text)
        self.sync_pod(pod, node)

    def shut_down(self, node: SimulatedNode) -> None:
        """End every pod of a node that shuts down, as a graceful node shutdown does."""
        for pod in list(node.pods.values()):
            if pod.state is PodState.ACTIVE and not node.stopped:
                text = "Pod was terminated in response to imminent node shutdown."
                pod.fail(self._timers.now(), "Terminated", text)
                self.sync_pod(pod, node)

    def sync_pod(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        """Do everything that is due for a pod, write its status and set its timer."""
        if node.stopped or node.pods.get(pod.uid) is not pod:
            return
        pod.advance(self._timers.now())
        if pod.reported.dirty and not pod.reported.write_in_flight:
            self._write_status(pod, node)
        if pod.state is PodState.TERMINATED and not pod.reported.write_in_flight:
            self._delete_from_api(pod, node)
        self._set_timer(pod, node)

    def _restore_conditions(self, pod: SimulatedPod) -> None:
        """Write the status again if another client has changed the kubelet's conditions."""
        if _conditions_overwritten(pod):
            pod.reported.body, pod.reported.dirty = b"", True

    def _consider_resize(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        if pod.state is not PodState.ACTIVE:
            return
        if not containers_to_resize(pod.containers):
            pod.reported.dirty = pod.reported.dirty or pod.resize is not None
            pod.resize = None
        elif pod.resize is None or pod.resize.wanted != requested_resources(pod.containers):
            pod.begin_resize(self._timers.now(), refuse_resize(pod, node))

    def _set_timer(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        if pod.due_at < pod.timer_at:
            pod.timer_at = pod.due_at
            self._timers.call_at(
                pod.due_at, partial(self._timer_fired, pod, node, timer_at=pod.due_at)
            )

    def _timer_fired(self, pod: SimulatedPod, node: SimulatedNode, *, timer_at: float) -> None:
        # Timers cannot be cancelled: one that was replaced by an earlier one does nothing.
        if pod.timer_at == timer_at:
            pod.timer_at = NEVER
            self.sync_pod(pod, node)

    # --- Writing ---------------------------------------------------------------------------------

    def _write_status(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        finished = pod.state is PodState.FINISHED and pod.failure is None
        pod.reported.dirty = False
        if (finished and pod.api_object.finished) or pod.state is PodState.REMOVED:
            return
        status = msgspec.json.encode(pod_status(pod))
        if status != pod.reported.body:
            body = b'{"metadata":{"uid":"%b"},"status":%b}' % (pod.uid.encode(), status)
            self._send(pod, node, _status_patch(pod.api_object, body), status)

    def _delete_from_api(self, pod: SimulatedPod, node: SimulatedNode) -> None:
        """Delete a terminated pod with grace period 0, after its last status was written."""
        pod.state = PodState.REMOVED
        self._send(pod, node, _delete_request(pod.api_object), pod.reported.body)

    def _send(
        self, pod: SimulatedPod, node: SimulatedNode, request: Request, status: bytes
    ) -> None:
        pod.reported.write_in_flight = True
        self._requests.send(request, partial(self._on_written, pod, node, status))

    def _on_written(
        self, pod: SimulatedPod, node: SimulatedNode, status: bytes, result: RequestResult
    ) -> None:
        reported = pod.reported
        reported.write_in_flight = False
        if not isinstance(result, KubeError):
            if pod.state is PodState.REMOVED:
                return
            reported.body = status
            version = resource_version_in(result)
            reported.resource_version = max(reported.resource_version, version)
            # The watch may have shown another client's write before this response arrived.
            self._restore_conditions(pod)
            self.sync_pod(pod, node)
        elif isinstance(result, NotFound | Conflict):
            # The pod is gone, or another one has its name: the watch will show it.
            reported.body = status
        else:
            _LOG.warning("%s, trying again", result)
            reported.dirty = True
            if pod.state is PodState.REMOVED:
                pod.state = PodState.TERMINATED
            self._timers.call_later(_RETRY, partial(self.sync_pod, pod, node))


def _conditions_overwritten(pod: SimulatedPod) -> bool:
    """Whether another client has written one of the conditions that belong to the kubelet."""
    reported, api_object = pod.reported, pod.api_object
    # An object that is not newer than the last own write shows what was written.
    if parse_resource_version(api_object.metadata.resource_version) <= reported.resource_version:
        return False
    if not reported.body:
        return False
    for kind in KUBELET_CONDITIONS:
        written, found = reported.conditions.get(kind), api_object.condition(kind)
        if written is not None and (found is None or found.status != written.status):
            return True
    return False


def _status_patch(pod: FullPod, body: bytes) -> Request:
    meta = pod.metadata
    return verbs.patch(
        PODS,
        meta.name,
        body,
        kind=STRATEGIC_PATCH,
        namespace=meta.namespace,
        subresource="status",
        manager="kubelet",
    )


def _delete_request(pod: FullPod) -> Request:
    meta = pod.metadata
    return verbs.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0)
