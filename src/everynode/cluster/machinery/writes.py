"""Sending what kubelets and controllers write, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from everynode.cluster.machinery.objects import decode_bare
from everynode.kube.cache import number
from everynode.kube.errors import KubeError, from_response, from_transport
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Transport, TransportError

AT_ONCE: Final = 32

Answer = Response | KubeError
Done = Callable[[Answer], None]


class Writes:
    """A queue of requests, each answered to whoever sent it.

    Bounded by its users: each has at most one request under way for an object it looks after.
    """

    def __init__(self, transport: Transport, *, at_once: int = AT_ONCE) -> None:
        self._transport = transport
        self._at_once = at_once
        self._queue: deque[tuple[Request, Done]] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self.sent = 0

    def __len__(self) -> int:
        return len(self._queue)

    def send(self, request: Request, done: Done) -> None:
        """Send a request when its turn comes; `done` gets the answer or what went wrong."""
        self._queue.append((request, done))
        if self._idle:
            waiting = self._idle.popleft()
            if not waiting.done():
                waiting.set_result(None)

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._queue:
                waiting = loop.create_future()
                self._idle.append(waiting)
                await waiting
                continue
            request, done = self._queue.popleft()
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
    return number(decode_bare(answer.body).metadata.resource_version)


def ignore(answer: Answer) -> None:
    """For writes whose failure hurts nobody."""
