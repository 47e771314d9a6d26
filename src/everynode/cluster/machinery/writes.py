"""Sending what kubelets and controllers write, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from everynode.api.objects import Partial
from everynode.cluster.machinery.crew import Crew
from everynode.kube.cache import number
from everynode.kube.errors import KubeError, from_response, from_transport
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport, TransportError

AT_ONCE: Final = 32


class _Meta(Partial, frozen=True):
    resource_version: str = ""


class _Versioned(Partial, frozen=True):
    metadata: _Meta


_decode: Final[Callable[[bytes], _Versioned]] = msgspec.json.Decoder(_Versioned).decode

Answer = Response | KubeError
Done = Callable[[Answer], None]


class Writes:
    """A queue of requests, each answered to whoever sent it.

    Bounded by its users: each has at most one request under way for an object it looks after.
    """

    def __init__(self, transport: Transport, *, at_once: int = AT_ONCE) -> None:
        self._transport = transport
        self._crew: Crew[tuple[Request, Done]] = Crew(self._carry, most=at_once)
        self.sent = 0

    def __len__(self) -> int:
        return len(self._crew)

    def send(self, request: Request, done: Done) -> None:
        """Send a request when its turn comes; `done` gets the answer or what went wrong."""
        self._crew.put((request, done))

    async def run(self) -> None:
        """Send until cancelled."""
        await self._crew.run()

    async def _carry(self, item: tuple[Request, Done]) -> None:
        request, done = item
        self.sent += 1
        done(await ask(self._transport, request))


async def ask(transport: Transport, request: Request) -> Answer:
    """The answer to one request, or what went wrong with it."""
    try:
        response = await transport.send(request)
    except TransportError as error:
        return from_transport(request, error)
    return response if response.ok else from_response(request, response)


def version_in(answer: Answer) -> int:
    """The version of the object that an answer carries, 0 where there is none."""
    if isinstance(answer, KubeError) or not answer.body:
        return 0
    return number(_decode(answer.body).metadata.resource_version)


def ignore(answer: Answer) -> None:
    """For writes whose failure hurts nobody."""
