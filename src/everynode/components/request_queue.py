"""Request queue: sends the requests of kubelets and controllers, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from everynode.api.objects import Partial
from everynode.components.worker_pool import WorkerPool
from everynode.kube.client import UNREADABLE
from everynode.kube.errors import KubeError, from_response, from_transport
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport, TransportError
from everynode.kube.watch.cache import parse_resource_version

MAX_IN_FLIGHT: Final = 32


class _ResourceVersion(Partial, frozen=True):
    resource_version: str = ""


class _AnyObject(Partial, frozen=True):
    metadata: _ResourceVersion


_decode: Final[Callable[[bytes], _AnyObject]] = msgspec.json.Decoder(_AnyObject).decode

RequestResult = Response | KubeError
OnResult = Callable[[RequestResult], None]


class RequestQueue:
    """A queue of requests; the result of each is passed to the callback it was sent with.

    Its length is bounded by its users: each has at most one request in flight per object.
    """

    def __init__(self, transport: Transport, *, max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._transport = transport
        self._pool: WorkerPool[tuple[Request, OnResult]] = WorkerPool(
            self._send, max_workers=max_in_flight
        )
        self.sent = 0

    def __len__(self) -> int:
        return len(self._pool)

    def send(self, request: Request, on_result: OnResult) -> None:
        """Queue a request; `on_result` gets the response, or the error."""
        self._pool.put((request, on_result))

    async def run(self) -> None:
        """Send until cancelled."""
        await self._pool.run()

    async def _send(self, item: tuple[Request, OnResult]) -> None:
        request, on_result = item
        self.sent += 1
        on_result(await send_request(self._transport, request))


async def send_request(transport: Transport, request: Request) -> RequestResult:
    """Send one request; the response, or the error it is answered with."""
    try:
        response = await transport.send(request)
    except TransportError as error:
        return from_transport(request, error)
    return response if response.ok else from_response(request, response)


def resource_version_in(result: RequestResult) -> int:
    """The resourceVersion of the object in a response, 0 if there is none."""
    if isinstance(result, KubeError) or not result.body:
        return 0
    try:
        return parse_resource_version(_decode(result.body).metadata.resource_version)
    except UNREADABLE:
        return 0  # not a Kubernetes object, for example the page of a proxy


def ignore_result(result: RequestResult) -> None:
    """The callback of writes whose failure does not matter."""
