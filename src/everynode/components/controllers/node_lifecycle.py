"""Node lifecycle: sets nodes without heartbeats to Unknown, taints nodes by their conditions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.times import format_time
from everynode.components.controllers.eviction_rate import ZoneHealth, zone_of
from everynode.components.events import EventRecorder, InvolvedObject
from everynode.components.informers import BY_NODE, SharedInformers
from everynode.components.kubelet.node import SimulationSettings
from everynode.components.kubelet.registration import write_condition
from everynode.components.objects import FullNode, FullPod, FullTaint
from everynode.components.request_queue import RequestQueue, RequestResult, resource_version_in
from everynode.components.scheduler.scheduler import status_patch
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES
from everynode.kube.watch.cache import parse_resource_version

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0
COMPONENT: Final = "node-controller"
_PRESSURE_TAINTS: Final = {
    "MemoryPressure": keys.TAINT_MEMORY_PRESSURE,
    "DiskPressure": keys.TAINT_DISK_PRESSURE,
    "PIDPressure": keys.TAINT_PID_PRESSURE,
    "NetworkUnavailable": keys.TAINT_NETWORK_UNAVAILABLE,
}
_READY_TAINTS: Final = {"False": keys.TAINT_NOT_READY, "Unknown": keys.TAINT_UNREACHABLE}
_MANAGED_TAINTS: Final = frozenset(
    {*_PRESSURE_TAINTS.values(), *_READY_TAINTS.values(), keys.TAINT_UNSCHEDULABLE}
)
_CONDITIONS_OF_A_SILENT_NODE: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeLifecycleController:
    """Checks the heartbeats of nodes and keeps their taints in line with their conditions.

    `is_alive` tells whether a node's kubelet runs; unlike leases this needs no writes.
    """

    def __init__(
        self,
        informers: SharedInformers,
        settings: SimulationSettings,
        *,
        is_alive: Callable[[str], bool],
        timers: Timers,
        requests: RequestQueue,
        recorder: EventRecorder,
    ) -> None:
        self._informers = informers
        self._settings = settings
        self._is_alive = is_alive
        self._timers = timers
        self._requests = requests
        self._recorder = recorder
        self._silent_since: dict[str, float] = {}  # nodes without heartbeats
        self._writing: dict[str, None] = {}
        self._zones = ZoneHealth()
        self._evict_at: dict[str, float] = {}  # when the next node of a zone may be evicted
        self._evicting: dict[str, None] = {}  # nodes that get the NoExecute taint
        self._queued: dict[str, None] = {}  # nodes that wait for their zone's turn
        informers.nodes.subscribe(self._on_node)

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        if after is None:
            if before is not None:
                self._remove_node(before.name)
            return
        ready = _ready_status(after)
        self._zones.set_node(after, healthy=ready == "True")
        self._check_heartbeat(after)
        if ready == "True":
            self._evicting.pop(after.name, None)
            self._queued.pop(after.name, None)
        elif ready:
            if before is None or _ready_status(before) == "True":
                self._mark_pods_not_ready(after)
            self._queue_eviction(after)
        self._taint(after)

    def _remove_node(self, name: str) -> None:
        self._zones.remove_node(name)
        for known in (self._silent_since, self._writing, self._evicting, self._queued):
            known.pop(name, None)

    # --- Heartbeats ------------------------------------------------------------------------------

    def _check_heartbeat(self, node: FullNode) -> None:
        if self._is_alive(node.name):
            self._silent_since.pop(node.name, None)
        elif node.name not in self._silent_since:
            since = self._silent_since[node.name] = self._timers.now()
            grace = self._settings.behaviour.scaled(self._settings.behaviour.heartbeat_grace)
            self._timers.call_later(grace, partial(self._mark_unknown, node.name, since))

    def _mark_unknown(self, name: str, since: float) -> None:
        node = self._informers.nodes.get(name)
        if (
            node is None
            or self._silent_since.get(name) != since
            or _ready_status(node) == "Unknown"
        ):
            return
        now = self._settings.clock.now()
        text = "Kubelet stopped posting node status."
        conditions = [
            write_condition(kind, "Unknown", "NodeStatusUnknown", text, now=now, since=now)
            for kind in _CONDITIONS_OF_A_SILENT_NODE
        ]
        patch = verbs.patch(
            NODES,
            name,
            {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}},
            kind=STRATEGIC_PATCH,
            subresource="status",
        )
        self._requests.send(patch, partial(self._on_marked_unknown, name, since))

    def _on_marked_unknown(self, name: str, since: float, result: RequestResult) -> None:
        if isinstance(result, KubeError):
            self._timers.call_later(_RETRY, partial(self._mark_unknown, name, since))
            return
        what = f"Node {name} status is now: NodeNotReady"
        involved = InvolvedObject("Node", name, uid=name)
        self._recorder.record(involved, "NodeNotReady", what, component=COMPONENT)

    def _mark_pods_not_ready(self, node: FullNode) -> None:
        """Set the pods of a node that is not Ready to not Ready."""
        for pod in list(self._informers.pods.by(BY_NODE, node.name).values()):
            condition = pod.condition("Ready")
            if condition is not None and condition.status == "True":
                self._mark_pod_not_ready(pod)
                self._record_pod_event(pod)

    def _mark_pod_not_ready(self, pod: FullPod) -> None:
        now = format_time(self._settings.clock.now())
        changed = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        patch = status_patch(pod, {"conditions": [changed]})
        self._requests.send(patch, partial(self._on_pod_marked, pod))

    def _on_pod_marked(self, pod: FullPod, result: RequestResult) -> None:
        if isinstance(result, KubeError) and not isinstance(result, NotFound | Conflict):
            self._timers.call_later(_RETRY, partial(self._mark_pod_again, pod))

    def _mark_pod_again(self, pod: FullPod) -> None:
        node = self._informers.nodes.get(pod.spec.node_name)
        if node is not None and _ready_status(node) not in ("", "True"):
            self._mark_pod_not_ready(pod)

    def _record_pod_event(self, pod: FullPod) -> None:
        meta = pod.metadata
        involved = InvolvedObject("Pod", meta.name, meta.namespace, uid=meta.uid)
        record = self._recorder.record
        record(involved, "NodeNotReady", "Node is not ready", component=COMPONENT, warning=True)

    # --- Taints ----------------------------------------------------------------------------------

    def _queue_eviction(self, node: FullNode) -> None:
        """A node that is not ready gets its NoExecute taint when its zone's turn comes."""
        if node.name in self._evicting or node.name in self._queued:
            return
        pause = self._zones.eviction_interval(zone_of(node))
        if pause is None:
            return
        zone, now = zone_of(node), self._timers.now()
        turn = max(now, self._evict_at.get(zone, now))
        self._evict_at[zone] = turn + self._settings.behaviour.scaled(pause)
        self._queued[node.name] = None
        self._timers.call_at(turn, partial(self._evict, node.name))

    def _evict(self, name: str) -> None:
        if name not in self._queued:
            return
        del self._queued[name]
        self._evicting[name] = None
        node = self._informers.nodes.get(name)
        if node is not None:
            self._taint(node)

    def _taint(self, node: FullNode) -> None:
        if node.name in self._writing:
            return
        wanted = self._wanted_taints(node)
        if wanted is None or _same_taints(wanted, node.spec.taints):
            return
        taints = msgspec.to_builtins(wanted)
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints or None},
        }
        self._writing[node.name] = None
        self._requests.send(
            verbs.patch(NODES, node.name, body), partial(self._on_tainted, node.name)
        )

    def _on_tainted(self, name: str, result: RequestResult) -> None:
        self._writing.pop(name, None)
        node = self._informers.nodes.get(name)
        if node is None or isinstance(result, NotFound):
            return
        if isinstance(result, KubeError):
            if not isinstance(result, Conflict):
                _LOG.warning("%s, trying again", result)
            self._timers.call_later(_RETRY, partial(self._taint_again, name))
        elif parse_resource_version(node.metadata.resource_version) >= resource_version_in(result):
            # The watch showed this write, and perhaps later changes, before the response came: no
            # further event will lead here.
            self._taint(node)

    def _taint_again(self, name: str) -> None:
        node = self._informers.nodes.get(name)
        if node is not None:
            self._taint(node)

    def _wanted_taints(self, node: FullNode) -> list[FullTaint] | None:
        """The taints the node should have; None until its kubelet has reported conditions."""
        ready = _ready_status(node)
        if not ready:
            return None
        rows = []
        if ready != "True":
            rows.append((_READY_TAINTS[ready], "NoSchedule"))
            if node.name in self._evicting:
                rows.append((_READY_TAINTS[ready], "NoExecute"))
        rows += [
            (_PRESSURE_TAINTS[condition.type], "NoSchedule")
            for condition in node.status.conditions
            if condition.type in _PRESSURE_TAINTS and condition.status == "True"
        ]
        if node.spec.unschedulable:
            rows.append((keys.TAINT_UNSCHEDULABLE, "NoSchedule"))
        known = {(taint.key, taint.effect): taint for taint in node.spec.taints}
        now = format_time(self._settings.clock.now())
        kept = [taint for taint in node.spec.taints if taint.key not in _MANAGED_TAINTS]
        added = [
            known.get((key, effect)) or FullTaint(key, effect=effect, time_added=now)
            for key, effect in rows
        ]
        return [*kept, *added]


def _ready_status(node: FullNode) -> str:
    """The status of the Ready condition, empty while there is none."""
    condition = node.condition("Ready")
    return "" if condition is None else condition.status


def _same_taints(wanted: list[FullTaint], present: tuple[FullTaint, ...]) -> bool:
    rows = sorted((taint.key, taint.effect) for taint in wanted)
    return rows == sorted((taint.key, taint.effect) for taint in present)
