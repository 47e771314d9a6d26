"""The in-process transport: requests reach the API without sockets."""

from __future__ import annotations

from collections import deque

from everynode.cluster.rest import Api
from everynode.cluster.watches import Watch, line
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Event, Stream


class LocalStream:
    """A watch, event by event; as lines for whoever wants those."""

    def __init__(self, watch: Watch) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self._watch = watch
        self._events: deque[Event] = deque()

    async def event(self) -> Event | None:
        """The next event, or nothing when the watch has ended."""
        if not self._events:
            self._events.extend(await self._watch.events())
        return self._events.popleft() if self._events else None

    async def readline(self) -> bytes:
        """The next line, or nothing when the watch has ended."""
        event = await self.event()
        return b"" if event is None else line(*event)

    async def read(self) -> bytes:
        """Everything until the end."""
        lines = []
        while found := await self.readline():
            lines.append(found)
        return b"\n".join(lines)

    async def close(self) -> None:
        """End the watch."""
        self._watch.close()


class WholeStream:
    """An answer that was whole from the start, such as a refusal."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._left = response.body

    async def readline(self) -> bytes:
        """The next line."""
        head, _, self._left = self._left.partition(b"\n")
        return head

    async def read(self) -> bytes:
        """Everything that is left."""
        body, self._left = self._left, b""
        return body

    async def close(self) -> None:
        """Nothing is held."""


class LocalTransport:
    """Carries requests to an API in the same process."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._clock = api.site.clock

    async def send(self, request: Request) -> Response:
        """Ask, and wait for the answer; others get their turn first, as on a network."""
        await self._clock.sleep(0)
        return await self._api.handle(request)

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        await self._clock.sleep(0)
        answer = await self._api.open(request)
        return LocalStream(answer) if isinstance(answer, Watch) else WholeStream(answer)

    async def close(self) -> None:
        """Nothing is held."""
