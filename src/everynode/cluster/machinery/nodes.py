"""What the control plane makes of a node's state: Unknown when it is silent, and its taints."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.times import format_time
from everynode.cluster.machinery.events import Recorder, Subject
from everynode.cluster.machinery.objects import FullTaint, Node, Pod
from everynode.cluster.machinery.registration import write_condition
from everynode.cluster.machinery.scheduler import status_patch
from everynode.cluster.machinery.seats import Setting
from everynode.cluster.machinery.shared import NODE, Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, Writes, version_in
from everynode.cluster.machinery.zones import Zones, zone_of
from everynode.kube import verbs
from everynode.kube.cache import number
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES

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
_OURS: Final = frozenset(
    {*_PRESSURE_TAINTS.values(), *_READY_TAINTS.values(), keys.TAINT_UNSCHEDULABLE}
)
_SILENT: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeController:
    """Watches over the heartbeats of nodes and keeps their taints in line with their state.

    `beats` says whether a node's kubelet is alive; asking costs no writes.
    """

    def __init__(
        self,
        shared: Shared,
        setting: Setting,
        *,
        beats: Callable[[str], bool],
        timers: Timers,
        writes: Writes,
        recorder: Recorder,
    ) -> None:
        self._shared = shared
        self._setting = setting
        self._beats = beats
        self._timers = timers
        self._writes = writes
        self._recorder = recorder
        self._silent: dict[str, float] = {}  # since when
        self._writing: dict[str, None] = {}
        self._zones = Zones()
        self._evict_at: dict[str, float] = {}  # when a zone may lose its next node
        self._evicting: dict[str, None] = {}  # nodes whose turn has come
        self._queued: dict[str, None] = {}  # nodes that wait for it
        shared.nodes.subscribe(self._on_node)

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if after is None:
            if before is not None:
                self._forget(before.name)
            return
        ready = _ready(after)
        self._zones.note(after, well=ready == "True")
        self._listen(after)
        if ready == "True":
            self._evicting.pop(after.name, None)
            self._queued.pop(after.name, None)
        elif ready:
            if before is None or _ready(before) == "True":
                self._mark_pods(after)
            self._queue_eviction(after)
        self._taint(after)

    def _forget(self, name: str) -> None:
        self._zones.forget(name)
        for known in (self._silent, self._writing, self._evicting, self._queued):
            known.pop(name, None)

    # --- Heartbeats ------------------------------------------------------------------------------

    def _listen(self, node: Node) -> None:
        if self._beats(node.name):
            self._silent.pop(node.name, None)
        elif node.name not in self._silent:
            since = self._silent[node.name] = self._timers.now()
            grace = self._setting.behaviour.scaled(self._setting.behaviour.heartbeat_grace)
            self._timers.after(grace, partial(self._check, node.name, since))

    def _check(self, name: str, since: float) -> None:
        node = self._shared.nodes.get(name)
        if node is None or self._silent.get(name) != since or _ready(node) == "Unknown":
            return
        now = self._setting.clock.now()
        text = "Kubelet stopped posting node status."
        conditions = [
            write_condition(kind, "Unknown", "NodeStatusUnknown", text, now=now, since=now)
            for kind in _SILENT
        ]
        patch = verbs.patch(
            NODES,
            name,
            {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}},
            kind=STRATEGIC_PATCH,
            subresource="status",
        )
        self._writes.send(patch, partial(self._checked, name, since))

    def _checked(self, name: str, since: float, answer: Answer) -> None:
        if isinstance(answer, KubeError):
            self._timers.after(_RETRY, partial(self._check, name, since))
            return
        what = f"Node {name} status is now: NodeNotReady"
        subject = Subject("Node", name, uid=name)
        self._recorder.record(subject, "NodeNotReady", what, component=COMPONENT)

    def _mark_pods(self, node: Node) -> None:
        """Nobody can say that the pods of a silent node are ready."""
        for pod in list(self._shared.pods.by(NODE, node.name).values()):
            condition = pod.condition("Ready")
            if condition is not None and condition.status == "True":
                self._mark_pod(pod)
                self._tell_pod(pod)

    def _mark_pod(self, pod: Pod) -> None:
        now = format_time(self._setting.clock.now())
        changed = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        patch = status_patch(pod, {"conditions": [changed]})
        self._writes.send(patch, partial(self._marked, pod))

    def _marked(self, pod: Pod, answer: Answer) -> None:
        if isinstance(answer, KubeError) and not isinstance(answer, NotFound | Conflict):
            self._timers.after(_RETRY, partial(self._mark_again, pod))

    def _mark_again(self, pod: Pod) -> None:
        node = self._shared.nodes.get(pod.spec.node_name)
        if node is not None and _ready(node) not in ("", "True"):
            self._mark_pod(pod)

    def _tell_pod(self, pod: Pod) -> None:
        meta = pod.metadata
        subject = Subject("Pod", meta.name, meta.namespace, uid=meta.uid)
        record = self._recorder.record
        record(subject, "NodeNotReady", "Node is not ready", component=COMPONENT, warning=True)

    # --- Taints ----------------------------------------------------------------------------------

    def _queue_eviction(self, node: Node) -> None:
        """A node that is not ready gets its NoExecute taint when its zone's turn comes."""
        if node.name in self._evicting or node.name in self._queued:
            return
        pause = self._zones.pause(zone_of(node))
        if pause is None:
            return
        zone, now = zone_of(node), self._timers.now()
        turn = max(now, self._evict_at.get(zone, now))
        self._evict_at[zone] = turn + self._setting.behaviour.scaled(pause)
        self._queued[node.name] = None
        self._timers.at(turn, partial(self._evict, node.name))

    def _evict(self, name: str) -> None:
        if name not in self._queued:
            return
        del self._queued[name]
        self._evicting[name] = None
        node = self._shared.nodes.get(name)
        if node is not None:
            self._taint(node)

    def _taint(self, node: Node) -> None:
        if node.name in self._writing:
            return
        wanted = self._wanted(node)
        if wanted is None or _alike(wanted, node.spec.taints):
            return
        taints = msgspec.to_builtins(wanted)
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints or None},
        }
        self._writing[node.name] = None
        self._writes.send(verbs.patch(NODES, node.name, body), partial(self._tainted, node.name))

    def _tainted(self, name: str, answer: Answer) -> None:
        self._writing.pop(name, None)
        node = self._shared.nodes.get(name)
        if node is None or isinstance(answer, NotFound):
            return
        if isinstance(answer, KubeError):
            if not isinstance(answer, Conflict):
                _LOG.warning("%s, trying again", answer)
            self._timers.after(_RETRY, partial(self._taint_again, name))
        elif number(node.metadata.resource_version) >= version_in(answer):
            # What changed meanwhile was told before our answer came, and will not be told again.
            self._taint(node)

    def _taint_again(self, name: str) -> None:
        node = self._shared.nodes.get(name)
        if node is not None:
            self._taint(node)

    def _wanted(self, node: Node) -> list[FullTaint] | None:
        """The taints the node should have; None while its kubelet has not said anything yet."""
        ready = _ready(node)
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
        now = format_time(self._setting.clock.now())
        kept = [taint for taint in node.spec.taints if taint.key not in _OURS]
        made = [
            known.get((key, effect)) or FullTaint(key, effect=effect, time_added=now)
            for key, effect in rows
        ]
        return [*kept, *made]


def _ready(node: Node) -> str:
    """Status of the Ready condition, empty while there is none."""
    condition = node.condition("Ready")
    return "" if condition is None else condition.status


def _alike(wanted: list[FullTaint], present: tuple[FullTaint, ...]) -> bool:
    rows = sorted((taint.key, taint.effect) for taint in wanted)
    return rows == sorted((taint.key, taint.effect) for taint in present)
