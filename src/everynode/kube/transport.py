"""Transport interface: carries requests to an API server and brings back responses and streams.

The real one speaks HTTP; the embedded server offers one in process, through the same handler that
serves HTTP; the simulator wraps either to lose, delay and repeat requests and responses.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from everynode.kube.requests import Request, Response

Event = tuple[str, bytes]  # of a watch: its type, and the JSON of its object


class TransportError(Exception):
    """The server was not reached or did not respond; with `sent` it may have acted anyway."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Stream(Protocol):
    """A response that arrives line by line: a watch."""

    status: int
    headers: dict[str, str]

    async def readline(self) -> bytes:
        """Return the next whole line without its newline, or empty bytes when the stream has ended.

        Raises TransportError when the connection breaks.
        """
        ...

    async def read(self) -> bytes:
        """Return the rest of the response: the Status of a refused watch."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class InProcessStream(Protocol):
    """A stream inside one process; it spares encoding events as lines and decoding them again."""

    async def event(self) -> Event | None:
        """Return the next event, or None when the stream has ended."""
        ...


class Transport(Protocol):
    """Carries requests to one API server."""

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the whole response; raises TransportError."""
        ...

    async def open(self, request: Request) -> Stream:
        """Send a request whose response is a stream of lines; raises TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
