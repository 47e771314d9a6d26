"""Node leases: heartbeats for a node lifecycle controller that is not ours."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from everynode.api.times import format_micro_time
from everynode.clock import Clock
from everynode.components.informers import SharedInformers
from everynode.components.objects import FullNode
from everynode.components.request_queue import RequestQueue, RequestResult, ignore_result
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.resources import LEASES

Object = dict[str, Any]

_LOG: Final = logging.getLogger(__name__)
NAMESPACE: Final = "kube-node-lease"
_TICK: Final = 1.0


class LeaseRenewer:
    """Renews the lease of every node whose kubelet runs once per interval, evenly spread."""

    def __init__(
        self,
        informers: SharedInformers,
        clock: Clock,
        *,
        interval: float,
        is_alive: Callable[[str], bool],
        timers: Timers,
        requests: RequestQueue,
    ) -> None:
        self._informers = informers
        self._clock = clock
        self._interval = interval
        self._is_alive = is_alive
        self._timers = timers
        self._requests = requests
        self._names: deque[str] = deque()  # the node whose lease is oldest first
        self._due = 0.0  # renewals that are due, with the fraction of the next
        informers.nodes.subscribe(self._on_node)
        timers.call_later(_TICK, self._tick)

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        if before is None and after is not None:
            self._names.append(after.name)
            self._renew(after)

    def _tick(self) -> None:
        self._due += len(self._names) * _TICK / self._interval
        while self._due >= 1 and self._names:
            self._due -= 1
            name = self._names.popleft()
            node = self._informers.nodes.get(name)
            if node is not None:
                self._names.append(name)
                self._renew(node)
        self._timers.call_later(_TICK, self._tick)

    def _renew(self, node: FullNode) -> None:
        if self._is_alive(node.name):
            body = {"spec": {"renewTime": format_micro_time(self._clock.now())}}
            patch = verbs.patch(LEASES, node.name, body, namespace=NAMESPACE)
            self._requests.send(patch, partial(self._on_renewed, node))

    def _on_renewed(self, node: FullNode, result: RequestResult) -> None:
        if isinstance(result, NotFound):
            lease = _lease(node, self._interval, self._clock.now())
            self._requests.send(verbs.create(LEASES, lease, namespace=NAMESPACE), ignore_result)
        elif isinstance(result, KubeError):
            _LOG.warning("%s", result)


def _lease(node: FullNode, interval: float, now: float) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": node.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": max(1, round(4 * interval)),
            "renewTime": format_micro_time(now),
        },
    }
