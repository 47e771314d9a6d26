"""All simulated nodes: registered, or taken over when others create them, and reported on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from everynode.api.times import seconds
from everynode.cluster.machinery.behaviour import PRESSURES, ImageQuirks
from everynode.cluster.machinery.events import Recorder, Subject
from everynode.cluster.machinery.kubelet import Kubelet
from everynode.cluster.machinery.lives import PodLife
from everynode.cluster.machinery.objects import Node, Pod
from everynode.cluster.machinery.registration import (
    MOST_NODES,
    PRESSURE_REASONS,
    STANDARD,
    Machine,
    condition_row,
    node_name,
    node_object,
    node_status,
    write_condition,
)
from everynode.cluster.machinery.seats import Seat, Setting
from everynode.cluster.machinery.shared import NODE, Shared
from everynode.cluster.machinery.status import Object
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, Writes, version_in
from everynode.kube import verbs
from everynode.kube.cache import number
from everynode.kube.errors import AlreadyExists, KubeError
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0
_EVICTED_FOR: Final = {"memory": "memory", "disk": "ephemeral-storage", "pid": "pids"}


class Fleet:
    """Plays every node there is."""

    def __init__(
        self,
        shared: Shared,
        setting: Setting,
        *,
        timers: Timers,
        writes: Writes,
        recorder: Recorder,
        machine: Machine = STANDARD,
    ) -> None:
        self.seats: dict[str, Seat] = {}
        self._shared = shared
        self._setting = setting
        self._timers = timers
        self._writes = writes
        self._recorder = recorder
        self._machine = machine
        self._kubelet = Kubelet(timers, writes)
        self._indexes: dict[str, int] = {}
        self._next_index = MOST_NODES
        shared.nodes.subscribe(self._on_node)
        shared.pods.subscribe(self._on_pod)

    async def register(self, total: int, zones: Iterable[str]) -> None:
        """Create the nodes that are not there yet; returns when all are."""
        names = list(zones)
        missing = []
        for index in range(total):
            name = node_name(index, total)
            self._indexes[name] = index
            if name not in self._shared.nodes:
                missing.append((name, index, names[index % len(names)]))
        done = asyncio.Semaphore(0)
        for name, index, zone in missing:
            self._create(name, index, zone, done)
        for _ in missing:
            await done.acquire()

    def _create(self, name: str, index: int, zone: str, done: asyncio.Semaphore) -> None:
        now = self._setting.clock.now()
        node = node_object(name, index, zone=zone, now=now, machine=self._machine)

        def answered(answer: Answer) -> None:
            if isinstance(answer, KubeError) and not isinstance(answer, AlreadyExists):
                _LOG.warning("%s, trying again", answer)
                self._timers.after(_RETRY, partial(self._create, name, index, zone, done))
            else:
                done.release()

        self._writes.send(verbs.create(NODES, node, manager="kubelet"), answered)

    def beats(self, name: str) -> bool:
        """Whether a node's kubelet is alive."""
        seat = self.seats.get(name)
        return seat is not None and not seat.stopped

    def set_images(self, images: ImageQuirks) -> None:
        """What is particular about images has changed."""
        self._setting.images = images
        now = self._timers.now()
        for seat in self.seats.values():
            for life in list(seat.lives.values()):
                life.reconsider(now)
                self._kubelet.look(life, seat)

    def settle(self, pod: Pod) -> Object | None:
        """Let a pod that is about to be stored have been running on its node for a while.

        Its status, to be stored with it, so that its kubelet has nothing to add; None if it cannot
        have run there.
        """
        seat = self.seats.get(pod.spec.node_name)
        if seat is None or seat.stopped:
            return None
        life = self._life(pod, seat)
        status = self._kubelet.settle(life, seat)
        if status is None:
            seat.free_address(life.ip, life.uid)
        return status

    # --- Nodes -----------------------------------------------------------------------------------

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if after is None:
            if before is not None:
                self._leave(before.name)
            return
        seat = self.seats.get(after.name)
        if seat is None or seat.node.metadata.uid != after.metadata.uid:
            self._open(after)
            return
        was_stopped = seat.stopped
        seat.follow(after)
        if was_stopped and not seat.stopped:
            self._catch_up(seat)
        self._report(seat)
        self._relieve(seat)

    def _leave(self, name: str) -> None:
        """A node is gone, and its kubelet with all that it would still have done."""
        seat = self.seats.pop(name, None)
        if seat is not None:
            seat.lives.clear()

    def _open(self, node: Node) -> None:
        self._leave(node.name)
        seat = self.seats[node.name] = Seat(node, self._index(node.name), self._setting)
        self._report(seat)
        self._relieve(seat)
        for pod in list(self._shared.pods.by(NODE, node.name).values()):
            self._take(pod, seat)

    def _index(self, name: str) -> int:
        index = self._indexes.get(name)
        if index is None:
            self._next_index -= 1
            index = self._indexes[name] = self._next_index
        return index

    def _catch_up(self, seat: Seat) -> None:
        """A kubelet is back: it sees what happened meanwhile."""
        pods = self._shared.pods.by(NODE, seat.name)
        by_uid = {pod.uid: pod for pod in pods.values()}
        for life in list(seat.lives.values()):
            if life.uid not in by_uid:
                self._kubelet.drop(life, seat)
        for pod in list(pods.values()):
            self._meet(pod, seat)
        # What was due meanwhile has rung for nobody.
        for life in list(seat.lives.values()):
            self._kubelet.look(life, seat)

    def _report(self, seat: Seat) -> None:
        """Let the API know how the node is, if it does not."""
        if seat.stopped or seat.reporting:
            return
        rows = _rows(seat.node)
        known = {condition.type: condition for condition in seat.node.status.conditions}
        right = all(
            row[0] in known and (known[row[0]].status, known[row[0]].reason) == (row[1], row[2])
            for row in rows
        )
        if right and seat.node.status.allocatable:
            return
        now = self._setting.clock.now()
        conditions = []
        for kind, status, reason, message in rows:
            old = known.get(kind)
            kept = old is not None and old.status == status
            since = seconds(old.last_transition_time) if old is not None and kept else None
            since = now if since is None else since
            conditions.append(write_condition(kind, status, reason, message, now=now, since=since))
        body: dict[str, object] = {"conditions": conditions}
        if not seat.node.status.allocatable:
            index = self._index(seat.name)
            body = {**node_status(seat.name, index, machine=self._machine), **body}
        patch = verbs.patch(
            NODES,
            seat.name,
            {"metadata": {"uid": seat.node.metadata.uid}, "status": body},
            kind=STRATEGIC_PATCH,
            subresource="status",
            manager="kubelet",
        )
        seat.reporting = True
        self._writes.send(patch, partial(self._reported, seat))

    def _reported(self, seat: Seat, answer: Answer) -> None:
        seat.reporting = False
        if isinstance(answer, KubeError):
            _LOG.warning("%s, trying again", answer)
            self._timers.after(_RETRY, partial(self._report_again, seat))
        elif number(seat.node.metadata.resource_version) >= version_in(answer):
            # What changed meanwhile was told before our answer came, and will not be told again.
            self._report_again(seat)

    def _report_again(self, seat: Seat) -> None:
        if self.seats.get(seat.name) is seat:
            self._report(seat)

    def _relieve(self, seat: Seat) -> None:
        """Evict one pod after the other for as long as there is pressure."""
        if seat.evicting or not seat.node.metadata.annotations.pressure:
            return
        seat.evicting = True
        pause = self._setting.behaviour.scaled(self._setting.behaviour.eviction_pause)
        self._timers.after(pause, partial(self._evict, seat))

    def _evict(self, seat: Seat) -> None:
        seat.evicting = False
        if self.seats.get(seat.name) is seat:
            words = seat.node.metadata.annotations.pressure.split(",")
            resource = next((_EVICTED_FOR[word] for word in words if word in _EVICTED_FOR), "")
            if resource:
                self._kubelet.evict(seat, resource)
            self._relieve(seat)

    # --- Pods ------------------------------------------------------------------------------------

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        known = after or before
        seat = self.seats.get(known.spec.node_name) if known is not None else None
        if seat is None:
            return
        if before is not None and (after is None or after.uid != before.uid):
            life = seat.lives.get(before.uid)
            if life is not None and not seat.stopped:
                self._kubelet.drop(life, seat)
        if after is not None and not seat.stopped:
            self._meet(after, seat)

    def _meet(self, pod: Pod, seat: Seat) -> None:
        life = seat.lives.get(pod.uid)
        if life is None:
            self._take(pod, seat)
        elif life.pod is not pod:
            self._kubelet.follow(life, seat, pod)

    def _take(self, pod: Pod, seat: Seat) -> None:
        if not seat.stopped:
            self._kubelet.take(self._life(pod, seat), seat)

    def _life(self, pod: Pod, seat: Seat) -> PodLife:
        if pod.spec.host_network:
            address = seat.address
        else:
            address = seat.take_address(pod.uid, pod.status.pod_ip)
        return PodLife(pod, seat, address, tell=self._tell)

    def _tell(self, pod: Pod, reason: str, message: str, path: str, warning: bool) -> None:
        if not self._recorder.enabled:
            return
        meta = pod.metadata
        subject = Subject(
            "Pod", meta.name, meta.namespace, uid=meta.uid, version=meta.resource_version, path=path
        )
        host = pod.spec.node_name
        record = self._recorder.record
        record(subject, reason, message, component="kubelet", host=host, warning=warning)


def _rows(node: Node) -> list[tuple[str, str, str, str]]:
    """What the kubelet of a node has to say of it."""
    said = node.metadata.annotations
    pressed = [PRESSURES[word] for word in said.pressure.split(",") if word in PRESSURES]
    rows = [condition_row(kind, pressed=kind in pressed) for kind in PRESSURE_REASONS]
    if said.not_ready == "true":
        text = "simulated: the container runtime is down"
        rows.append(("Ready", "False", "KubeletNotReady", text))
    else:
        rows.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return rows
