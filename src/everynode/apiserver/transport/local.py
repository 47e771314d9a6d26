"""In-process transport: passes requests to an Api without sockets."""

from __future__ import annotations

from collections import deque

from everynode.apiserver.verbs.dispatch import Api
from everynode.apiserver.verbs.watch import Watch, encode_event
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Event, Stream


class LocalStream:
    """A watch stream read from a Watch; `event` skips the encoding that `readline` does."""

    def __init__(self, watch: Watch) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self._watch = watch
        self._events: deque[Event] = deque()

    async def event(self) -> Event | None:
        """Return the next event, or None when the watch has ended."""
        if not self._events:
            self._events.extend(await self._watch.events())
        return self._events.popleft() if self._events else None

    async def readline(self) -> bytes:
        """Return the next line, or b"" when the watch has ended."""
        event = await self.event()
        return b"" if event is None else encode_event(*event)

    async def read(self) -> bytes:
        """Return all lines until the watch ends."""
        lines = []
        while found := await self.readline():
            lines.append(found)
        return b"\n".join(lines)

    async def close(self) -> None:
        """End the watch."""
        self._watch.close()


class CompleteResponse:
    """A complete response in the place of a watch stream, such as an error Status."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._remaining = response.body

    async def readline(self) -> bytes:
        """Return the next line."""
        head, _, self._remaining = self._remaining.partition(b"\n")
        return head

    async def read(self) -> bytes:
        """Return the rest of the body."""
        body, self._remaining = self._remaining, b""
        return body

    async def close(self) -> None:
        """Do nothing: no connection is held."""


class LocalTransport:
    """Sends requests to an Api in the same process."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._clock = api.state.clock

    async def send(self, request: Request) -> Response:
        """Send a request; yields to other tasks first, as a network would."""
        await self._clock.sleep(0)
        return await self._api.handle(request)

    async def open(self, request: Request) -> Stream:
        """Start a watch; an error Status comes as a complete response."""
        await self._clock.sleep(0)
        answer = await self._api.open(request)
        return LocalStream(answer) if isinstance(answer, Watch) else CompleteResponse(answer)

    async def close(self) -> None:
        """Do nothing: no connection is held."""
