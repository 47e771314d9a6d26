"""Heartbeats that cost writes, for a control plane whose node controller wants to see leases."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from everynode.api.times import format_micro
from everynode.clock import Clock
from everynode.cluster.machinery.objects import Node
from everynode.cluster.machinery.shared import Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, Writes, ignore
from everynode.kube import verbs
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.resources import LEASES

Object = dict[str, Any]

_LOG: Final = logging.getLogger(__name__)
NAMESPACE: Final = "kube-node-lease"
_TICK: Final = 1.0


class Leases:
    """Renews the lease of every living node once in an interval, a few of them every second."""

    def __init__(
        self,
        shared: Shared,
        clock: Clock,
        *,
        interval: float,
        beats: Callable[[str], bool],
        timers: Timers,
        writes: Writes,
    ) -> None:
        self._shared = shared
        self._clock = clock
        self._interval = interval
        self._beats = beats
        self._timers = timers
        self._writes = writes
        self._turn: deque[str] = deque()
        self._due = 0.0
        shared.nodes.subscribe(self._on_node)
        timers.after(_TICK, self._tick)

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if before is None and after is not None:
            self._turn.append(after.name)
            self._renew(after)

    def _tick(self) -> None:
        self._due += len(self._turn) * _TICK / self._interval
        while self._due >= 1 and self._turn:
            self._due -= 1
            name = self._turn.popleft()
            node = self._shared.nodes.get(name)
            if node is not None:
                self._turn.append(name)
                self._renew(node)
        self._timers.after(_TICK, self._tick)

    def _renew(self, node: Node) -> None:
        if self._beats(node.name):
            body = {"spec": {"renewTime": format_micro(self._clock.now())}}
            patch = verbs.patch(LEASES, node.name, body, namespace=NAMESPACE)
            self._writes.send(patch, partial(self._renewed, node))

    def _renewed(self, node: Node, answer: Answer) -> None:
        if isinstance(answer, NotFound):
            lease = _lease(node, self._interval, self._clock.now())
            self._writes.send(verbs.create(LEASES, lease, namespace=NAMESPACE), ignore)
        elif isinstance(answer, KubeError):
            _LOG.warning("%s", answer)


def _lease(node: Node, interval: float, now: float) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": node.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": max(1, round(4 * interval)),
            "renewTime": format_micro(now),
        },
    }
