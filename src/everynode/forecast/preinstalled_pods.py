"""Preinstalled pods: pods that run already when a forecast begins.

Simulating the installation in full costs two thirds of what the update costs. So a pod that is
created is validated and defaulted by the server as any other, then stored as running on its node,
with the status that its kubelet would have written. A pod that its kubelet would refuse is created
the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.times import format_time
from everynode.apiserver.resources.pods import PodStrategy
from everynode.apiserver.storage.store import Store
from everynode.clock import Clock
from everynode.components.objects import FullPod, decode_pod
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport

Object = dict[str, Any]
StartOnNode = Callable[[FullPod], Object | None]  # makes a pod run on its node; its status, or None

_selectable: Final = PodStrategy().selectable
_json: Final = msgspec.json.Decoder(Object).decode


class PreinstalledPods:
    """Creates pods that run at once."""

    def __init__(
        self, store: Store, transport: Transport, clock: Clock, start_on_node: StartOnNode
    ) -> None:
        self._store = store
        self._transport = transport
        self._clock = clock
        self._start_on_node = start_on_node

    async def create_running(self, request: Request) -> Response:
        """Create a pod that runs at once; returns the server's response."""
        query = (*request.query, ("dryRun", "All"))
        dry_run = replace(request, query=query, accept="application/json")
        answer = await self._transport.send(dry_run)
        if answer.status != 201:
            return answer
        pod: Object = _json(answer.body)
        pod["spec"]["nodeName"] = decode_pod(answer.body).node
        gates = pod["status"]["conditions"] = self._gate_conditions(pod["spec"])
        status = self._start_on_node(msgspec.convert(pod, FullPod))
        if status is None:
            return await self._transport.send(request)
        pod["status"] |= {**status, "conditions": [*gates, *status["conditions"]]}
        record = self._store.put(self._store.collection("pods"), pod, fields=_selectable(pod))
        return replace(answer, body=record.body)

    def _gate_conditions(self, spec: Object) -> list[Object]:
        """Conditions that open the readiness gates of a pod."""
        now = format_time(self._clock.now())
        return [
            {"type": each["conditionType"], "status": "True", "lastTransitionTime": now}
            for each in spec.get("readinessGates") or ()
        ]
