"""The transport interface: bytes in, bytes out, whoever carries them.

The real one speaks HTTP; the embedded server offers one in process, through the same handler that
serves HTTP; the simulator wraps either to lose, delay and repeat what passes through.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from everynode.kube.requests import Request, Response

Event = tuple[str, bytes]  # of a watch: its type, and the JSON of its object


class TransportError(Exception):
    """The server was not reached or did not answer; `sent` says whether it may have acted."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Stream(Protocol):
    """An answer that arrives line by line, as watches do."""

    status: int
    headers: dict[str, str]

    async def readline(self) -> bytes:
        """Return the next whole line without its newline, or empty bytes when the stream has ended.

        Raises TransportError when the connection breaks.
        """
        ...

    async def read(self) -> bytes:
        """Everything that is left: the Status of a refused watch."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


@runtime_checkable
class Direct(Protocol):
    """A stream inside one process: nobody has to write events as lines and read them again."""

    async def event(self) -> Event | None:
        """Return the next event, or nothing when the stream has ended."""
        ...


class Transport(Protocol):
    """Carries requests to one API server."""

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the whole answer; raises TransportError."""
        ...

    async def open(self, request: Request) -> Stream:
        """Send a request whose answer is a stream of lines; raises TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
