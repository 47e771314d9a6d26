"""Pods that run already when a forecast begins: nobody asks how they came to their nodes.

Played in full, the installation costs as much as two thirds of an update. So a pod that is created
is checked and completed by the server as any other, and then is found running on its node; its
kubelet takes it over as after a restart, and refuses it if the node has no room.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.decode import Decoder
from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.cluster.machinery.images import container_id, image_id
from everynode.cluster.pods import PodRules
from everynode.cluster.store import Store
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport
from everynode.sim.invariants.referee import node_of

Object = dict[str, Any]

_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_selectable: Final = PodRules().selectable
_json: Final = msgspec.json.Decoder(Object).decode
_pod: Final = Decoder(Pod).one


class Residents:
    """Takes in pods as if they had been there before."""

    def __init__(self, store: Store, transport: Transport, clock: Clock) -> None:
        self._store = store
        self._transport = transport
        self._clock = clock

    async def take_in(self, request: Request) -> Response:
        """Let a pod be created and run at once; what a server refuses is refused."""
        query = (*request.query, ("dryRun", "All"))
        trial = replace(request, query=query, accept="application/json")
        answer = await self._transport.send(trial)
        if answer.status != 201:
            return answer
        pod: Object = _json(answer.body)
        pod["spec"]["nodeName"] = node_of(_pod(answer.body))
        pod["status"] |= _running(pod, format_time(self._clock.now()))
        record = self._store.put(self._store.collection("pods"), pod, fields=_selectable(pod))
        return replace(answer, body=record.body)


def _running(pod: Object, now: str) -> Object:
    """As much of a status as a kubelet needs to go on from."""
    uid, spec = pod["metadata"]["uid"], pod["spec"]
    gates = [each["conditionType"] for each in spec.get("readinessGates") or ()]
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in (*_CONDITIONS, *gates)
        ],
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": image_id(each["image"]),
                "containerID": container_id(uid, each["name"], 0),
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for each in spec["containers"]
        ],
    }
