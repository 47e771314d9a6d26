"""Simulated nodes: registers nodes, adopts those that others create, reports their status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from everynode.api.keys import NODE_SHUTDOWN
from everynode.api.times import seconds
from everynode.components.events import EventRecorder, InvolvedObject
from everynode.components.informers import BY_NODE, SharedInformers
from everynode.components.kubelet.behaviour import PRESSURES, ImageOverrides
from everynode.components.kubelet.kubelet import Kubelet
from everynode.components.kubelet.node import SimulatedNode, SimulationSettings
from everynode.components.kubelet.pod import SimulatedPod
from everynode.components.kubelet.registration import (
    MAX_NODES,
    PRESSURE_REASONS,
    STANDARD_MACHINE,
    ConditionRow,
    Machine,
    condition_row,
    node_name,
    node_object,
    node_status,
    write_condition,
)
from everynode.components.kubelet.status import Object
from everynode.components.objects import FullNode, FullPod
from everynode.components.request_queue import RequestQueue, RequestResult, resource_version_in
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import AlreadyExists, KubeError
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES
from everynode.kube.watch.cache import parse_resource_version

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0
_SHUTTING_DOWN: Final = "KubeletShuttingDown"
_EVICTION_RESOURCES: Final = {"memory": "memory", "disk": "ephemeral-storage", "pid": "pids"}


class SimulatedNodes:
    """Plays the kubelet of every node there is, also of nodes that others create."""

    def __init__(
        self,
        informers: SharedInformers,
        settings: SimulationSettings,
        *,
        timers: Timers,
        requests: RequestQueue,
        recorder: EventRecorder,
        machine: Machine = STANDARD_MACHINE,
    ) -> None:
        self._nodes: dict[str, SimulatedNode] = {}
        self._informers = informers
        self._settings = settings
        self._timers = timers
        self._requests = requests
        self._recorder = recorder
        self._machine = machine
        self._kubelet = Kubelet(timers, requests)
        # A node's index determines its addresses. Registered nodes count from zero, others
        # count down from MAX_NODES.
        self._indexes: dict[str, int] = {}
        self._next_index = MAX_NODES
        informers.nodes.subscribe(self._on_node)
        informers.pods.subscribe(self._on_pod)

    async def register(self, total: int, zones: Iterable[str]) -> None:
        """Create the nodes that do not exist yet; returns when all exist."""
        names = list(zones)
        missing = []
        for index in range(total):
            name = node_name(index, total)
            self._indexes[name] = index
            if name not in self._informers.nodes:
                missing.append((name, index, names[index % len(names)]))
        done = asyncio.Semaphore(0)
        for name, index, zone in missing:
            self._create(name, index, zone, done)
        for _ in missing:
            await done.acquire()

    def _create(self, name: str, index: int, zone: str, done: asyncio.Semaphore) -> None:
        now = self._settings.clock.now()
        node = node_object(name, index, zone=zone, now=now, machine=self._machine)

        def on_created(result: RequestResult) -> None:
            if isinstance(result, KubeError) and not isinstance(result, AlreadyExists):
                _LOG.warning("%s, trying again", result)
                self._timers.call_later(_RETRY, partial(self._create, name, index, zone, done))
            else:
                done.release()

        self._requests.send(verbs.create(NODES, node, manager="kubelet"), on_created)

    def is_alive(self, name: str) -> bool:
        """Whether a node's kubelet runs, and would send heartbeats."""
        node = self._nodes.get(name)
        return node is not None and not node.stopped

    def set_images(self, images: ImageOverrides) -> None:
        """The behaviour of images has changed."""
        self._settings.images = images
        now = self._timers.now()
        for node in self._nodes.values():
            for pod in list(node.pods.values()):
                pod.overrides_changed(now)
                self._kubelet.sync_pod(pod, node)

    def add_running_pod(self, api_object: FullPod) -> Object | None:
        """Add a pod that is about to be stored as if it had been running for a while.

        Returns the status to store with it, so that its kubelet has nothing to write; None if
        the node is stopped, unknown, or refuses the pod.
        """
        node = self._nodes.get(api_object.spec.node_name)
        if node is None or node.stopped:
            return None
        pod = self._simulate(api_object, node)
        status = self._kubelet.add_running_pod(pod, node)
        if status is None:
            node.release_address(pod.ip, pod.uid)
        return status

    # --- Nodes -----------------------------------------------------------------------------------

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        if after is None:
            if before is not None:
                self._drop_node(before.name)
            return
        node = self._nodes.get(after.name)
        if node is None or node.api_object.metadata.uid != after.metadata.uid:
            self._add_node(after)
            return
        was_stopped = node.stopped
        boot = node.api_object.metadata.annotations.boot
        node.update(after)
        if after.metadata.annotations.boot not in ("", boot) and not node.stopped:
            self._reboot(node)
        if was_stopped and not node.stopped:
            self._catch_up(node)
        if after.metadata.annotations.shutdown:
            self._kubelet.shut_down(node)
        self._write_status(node)
        self._schedule_eviction(node)

    def _drop_node(self, name: str) -> None:
        """A node is gone; timers of its pods find that they are not on it any more."""
        node = self._nodes.pop(name, None)
        if node is not None:
            node.pods.clear()

    def _add_node(self, api_object: FullNode) -> None:
        name = api_object.name
        self._drop_node(name)
        node = self._nodes[name] = SimulatedNode(api_object, self._index(name), self._settings)
        self._write_status(node)
        self._schedule_eviction(node)
        for pod in list(self._informers.pods.by(BY_NODE, name).values()):
            self._add_pod(pod, node)

    def _index(self, name: str) -> int:
        index = self._indexes.get(name)
        if index is None:
            self._next_index -= 1
            index = self._indexes[name] = self._next_index
        return index

    def _reboot(self, node: SimulatedNode) -> None:
        """The node is silent for a while; then its kubelet starts the containers again."""
        node.booting = node.stopped = True
        behaviour = self._settings.behaviour
        takes = behaviour.scaled(behaviour.boot * node.slow)
        self._timers.call_later(takes, partial(self._finish_boot, node))

    def _finish_boot(self, node: SimulatedNode) -> None:
        if self._nodes.get(node.name) is not node:
            return
        node.booting = False
        node.update(node.api_object)
        now = self._timers.now()
        for pod in node.pods.values():
            pod.restart_containers(now)
        if not node.stopped:
            self._catch_up(node)
            self._write_status(node)

    def _catch_up(self, node: SimulatedNode) -> None:
        """A stopped kubelet runs again: it sees what has changed meanwhile."""
        pods = self._informers.pods.by(BY_NODE, node.name)
        by_uid = {pod.uid: pod for pod in pods.values()}
        for pod in list(node.pods.values()):
            if pod.uid not in by_uid:
                self._kubelet.remove_pod(pod, node)
        for api_object in list(pods.values()):
            self._add_or_update_pod(api_object, node)
        # Timers that fired while the kubelet was stopped did nothing.
        for pod in list(node.pods.values()):
            self._kubelet.sync_pod(pod, node)

    # --- The status of nodes ---------------------------------------------------------------------

    def _write_status(self, node: SimulatedNode) -> None:
        """Write the node's conditions, and its size, if the API shows others."""
        if node.stopped or node.write_in_flight:
            return
        wanted = _wanted_conditions(node.api_object)
        known = {condition.type: condition for condition in node.api_object.status.conditions}
        up_to_date = all(
            kind in known and (known[kind].status, known[kind].reason) == (status, reason)
            for kind, status, reason, _ in wanted
        )
        if up_to_date and node.api_object.status.allocatable:
            return
        patch = verbs.patch(
            NODES,
            node.name,
            {"metadata": {"uid": node.api_object.metadata.uid}, "status": self._status(node)},
            kind=STRATEGIC_PATCH,
            subresource="status",
            manager="kubelet",
        )
        node.write_in_flight = True
        self._requests.send(patch, partial(self._on_status_written, node))

    def _status(self, node: SimulatedNode) -> Object:
        """The conditions; everything else too while the node has no allocatable resources."""
        known = {condition.type: condition for condition in node.api_object.status.conditions}
        now = self._settings.clock.now()
        conditions = []
        for kind, status, reason, message in _wanted_conditions(node.api_object):
            old = known.get(kind)
            unchanged = old is not None and old.status == status
            since = seconds(old.last_transition_time) if old is not None and unchanged else None
            since = now if since is None else since
            conditions.append(write_condition(kind, status, reason, message, now=now, since=since))
        if node.api_object.status.allocatable:
            return {"conditions": conditions}
        fixed = node_status(node.name, self._index(node.name), machine=self._machine)
        return {**fixed, "conditions": conditions}

    def _on_status_written(self, node: SimulatedNode, result: RequestResult) -> None:
        node.write_in_flight = False
        version = node.api_object.metadata.resource_version
        if isinstance(result, KubeError):
            _LOG.warning("%s, trying again", result)
            self._timers.call_later(_RETRY, partial(self._write_status_again, node))
        elif parse_resource_version(version) >= resource_version_in(result):
            # The watch showed this write, and perhaps later changes, before the response came:
            # no further event will lead here.
            self._write_status_again(node)

    def _write_status_again(self, node: SimulatedNode) -> None:
        if self._nodes.get(node.name) is node:
            self._write_status(node)

    # --- Evictions under pressure ----------------------------------------------------------------

    def _schedule_eviction(self, node: SimulatedNode) -> None:
        """Evict one pod after the other for as long as the node reports pressure."""
        if node.eviction_scheduled or not node.api_object.metadata.annotations.pressure:
            return
        node.eviction_scheduled = True
        pause = self._settings.behaviour.scaled(self._settings.behaviour.eviction_pause)
        self._timers.call_later(pause, partial(self._evict, node))

    def _evict(self, node: SimulatedNode) -> None:
        node.eviction_scheduled = False
        if self._nodes.get(node.name) is node:
            words = node.api_object.metadata.annotations.pressure.split(",")
            found = (_EVICTION_RESOURCES[word] for word in words if word in _EVICTION_RESOURCES)
            resource = next(found, "")
            if resource:
                self._kubelet.evict(node, resource)
            self._schedule_eviction(node)

    # --- Pods ------------------------------------------------------------------------------------

    def _on_pod(self, before: FullPod | None, after: FullPod | None) -> None:
        known = after or before
        node = self._nodes.get(known.spec.node_name) if known is not None else None
        if node is None:
            return
        if before is not None and (after is None or after.uid != before.uid):
            pod = node.pods.get(before.uid)
            if pod is not None and not node.stopped:
                self._kubelet.remove_pod(pod, node)
        if after is not None and not node.stopped:
            self._add_or_update_pod(after, node)

    def _add_or_update_pod(self, api_object: FullPod, node: SimulatedNode) -> None:
        pod = node.pods.get(api_object.uid)
        if pod is None:
            self._add_pod(api_object, node)
        elif pod.api_object is not api_object:
            self._kubelet.update_pod(pod, node, api_object)

    def _add_pod(self, api_object: FullPod, node: SimulatedNode) -> None:
        if not node.stopped:
            self._kubelet.add_pod(self._simulate(api_object, node), node)

    def _simulate(self, api_object: FullPod, node: SimulatedNode) -> SimulatedPod:
        if api_object.spec.host_network:
            address = node.address
        else:
            address = node.allocate_address(api_object.uid, api_object.status.pod_ip)
        return SimulatedPod(api_object, node, address, record_event=self._record_event)

    def _record_event(
        self, pod: FullPod, reason: str, message: str, path: str, warning: bool
    ) -> None:
        if not self._recorder.enabled:
            return
        meta = pod.metadata
        involved = InvolvedObject(
            "Pod", meta.name, meta.namespace, uid=meta.uid, version=meta.resource_version, path=path
        )
        host = pod.spec.node_name
        record = self._recorder.record
        record(involved, reason, message, component="kubelet", host=host, warning=warning)


def _wanted_conditions(node: FullNode) -> list[ConditionRow]:
    """The conditions that the kubelet of a node reports, by the node's annotations."""
    annotations = node.metadata.annotations
    pressures = [PRESSURES[word] for word in annotations.pressure.split(",") if word in PRESSURES]
    rows = [condition_row(kind, under_pressure=kind in pressures) for kind in PRESSURE_REASONS]
    rows += _shutdown_condition(node)
    if annotations.shutdown:
        rows.append(("Ready", "False", "KubeletNotReady", "node is shutting down"))
    elif annotations.not_ready == "true":
        text = "simulated: the container runtime is down"
        rows.append(("Ready", "False", "KubeletNotReady", text))
    else:
        rows.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return rows


def _shutdown_condition(node: FullNode) -> list[ConditionRow]:
    """The condition of a graceful shutdown, which kubelets up to 1.37.1 do not report."""
    if node.metadata.annotations.shutdown == "true":
        text = "the node shuts down gracefully"
        return [(NODE_SHUTDOWN, "True", _SHUTTING_DOWN, text)]
    reasons = [each.reason for each in node.status.conditions if each.type == NODE_SHUTDOWN]
    if _SHUTTING_DOWN in reasons:
        return [(NODE_SHUTDOWN, "False", "KubeletRunning", "the kubelet runs")]
    return []
