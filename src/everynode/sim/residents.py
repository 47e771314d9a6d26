"""Pods that run already when a forecast begins: nobody asks how they came to their nodes.

Played in full, the installation costs as much as two thirds of an update. So a pod that is created
is checked and completed by the server as any other, and then is found running on its node, with the
status that its kubelet would have written. One that its kubelet would refuse is left to its fate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.cluster.machinery.objects import Pod, decode_pod
from everynode.cluster.pods import PodRules
from everynode.cluster.store import Store
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport
from everynode.sim.invariants.referee import node_of

Object = dict[str, Any]
Settle = Callable[[Pod], Object | None]  # lets a pod run on its node, and says its status

_selectable: Final = PodRules().selectable
_json: Final = msgspec.json.Decoder(Object).decode


class Residents:
    """Takes in pods as if they had been there before."""

    def __init__(self, store: Store, transport: Transport, clock: Clock, settle: Settle) -> None:
        self._store = store
        self._transport = transport
        self._clock = clock
        self._settle = settle

    async def take_in(self, request: Request) -> Response:
        """Let a pod be created and run at once; what a server refuses is refused."""
        query = (*request.query, ("dryRun", "All"))
        trial = replace(request, query=query, accept="application/json")
        answer = await self._transport.send(trial)
        if answer.status != 201:
            return answer
        pod: Object = _json(answer.body)
        pod["spec"]["nodeName"] = node_of(decode_pod(answer.body))
        gates = pod["status"]["conditions"] = self._open_gates(pod["spec"])
        status = self._settle(msgspec.convert(pod, Pod))
        if status is None:
            return await self._transport.send(request)
        pod["status"] |= {**status, "conditions": [*gates, *status["conditions"]]}
        record = self._store.put(self._store.collection("pods"), pod, fields=_selectable(pod))
        return replace(answer, body=record.body)

    def _open_gates(self, spec: Object) -> list[Object]:
        """What others have said of the readiness of a pod that runs."""
        now = format_time(self._clock.now())
        return [
            {"type": each["conditionType"], "status": "True", "lastTransitionTime": now}
            for each in spec.get("readinessGates") or ()
        ]
