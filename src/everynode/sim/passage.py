"""The controller's way to the server in a forecast: writes are counted, bad luck is handed out."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api import keys
from everynode.api.decode import Decoder
from everynode.api.objects import Pod
from everynode.kube import verbs
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, Transport
from everynode.sim.fleet import Fleet
from everynode.sim.invariants.referee import node_of
from everynode.sim.residents import Residents

BEHAVIOUR: Final = "sim.everynode.io/behaviour"
_HASH: Final = keys.REVISION_HASH.encode()
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode
_pod: Final = Decoder(Pod).one


class Passage:
    """Lets everything through; pods of the new version that are to fail are told so.

    Before it begins, pods run as soon as they are created.
    """

    def __init__(self, transport: Transport, fleet: Fleet, residents: Residents) -> None:
        self.writes: Counter[str] = Counter()  # by what was written
        self.failing: frozenset[str] = frozenset()  # nodes
        self._transport = transport
        self._fleet = fleet
        self._residents = residents
        self._begun = False

    def begin(self) -> None:
        """From now on writes are counted, and pods fail."""
        self._begun = True

    async def send(self, request: Request) -> Response:
        """Carry a request there and its answer back."""
        if self._begun and verbs.is_write(request):
            self.writes[_what(request.path)] += 1
            request = self._altered(request)
        elif request.method == "POST" and request.path.endswith("/pods"):
            return await self._residents.take_in(request)
        return await self._transport.send(request)

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        return await self._transport.open(request)

    async def close(self) -> None:
        """Let go."""
        await self._transport.close()

    def _altered(self, request: Request) -> Request:
        if not self.failing or "/pods" not in request.path or _HASH not in request.body:
            return request
        body = _json(request.body) if request.body[:1] == b"{" else {}
        metadata = body.get("metadata") or {}
        hash = (metadata.get("labels") or {}).get(keys.REVISION_HASH, "")
        if not hash or self._fleet.is_old(hash) or self._node(request) not in self.failing:
            return request
        annotations = {**(metadata.get("annotations") or {}), BEHAVIOUR: "fail=probe"}
        body["metadata"] = {**metadata, "annotations": annotations}
        return replace(request, body=msgspec.json.encode(body))

    def _node(self, request: Request) -> str:
        """Where the pod is that the request is about, or is to be."""
        if request.method == "POST":
            return node_of(_pod(request.body))
        return self._fleet.node_of(request.path.rpartition("/")[2])


def _what(path: str) -> str:
    """Which kind of write this is: of pods, of a status, of an event, or of something else."""
    if "/pods" in path:
        return "pods"
    if path.endswith("/status"):
        return "status"
    return "events" if "/events" in path else "others"
