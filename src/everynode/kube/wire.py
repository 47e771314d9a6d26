"""HTTP/1.1 as API servers speak it: one request at a time on a connection, answers as they come.

A rollout is made of many small requests, and of events that trickle in. A general HTTP library
takes about twice the CPU for a request (bench/client.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Final, cast

# While events trickle in, all connections are read at the same moments, so many seconds apart: to
# wake up for every event costs more than the event itself. What comes after a silence never waits.
GATHER: Final = 0.05
_STREAM: Final = 48 * 1024  # more bytes than this in one go: the next may take twice as long
_BULK: Final = 256 * 1024  # so many bytes at once do not trickle, and do not wait
_LONGEST_HEAD: Final = 256 * 1024
_LONGEST_SIZE: Final = 1024  # of the line that says how long a chunk is
_UNTIL_CLOSED: Final = -1


class WireError(Exception):
    """The connection broke, or what came on it is not HTTP."""


class Answer:
    """One answer, put together from whatever pieces it comes in."""

    __slots__ = (
        "_chunked",
        "_left",
        "_pieces",
        "_skip",
        "_wanted",
        "bodiless",
        "complete",
        "headers",
        "reason",
        "reusable",
        "status",
    )

    def __init__(self, *, bodiless: bool = False) -> None:
        self.status = 0  # until the head is there
        self.reason = ""  # the words beside the status
        self.headers: dict[str, str] = {}  # names in lower case
        self.complete = False
        self.reusable = False  # whether the connection can carry another request afterwards
        self.bodiless = bodiless
        self._chunked = False
        self._left = b""  # what came and cannot be read yet
        self._pieces: list[bytes] = []
        self._wanted = 0  # bytes of the body, or of the present chunk, that are still to come
        self._skip = 0  # bytes of the line end after a chunk

    def feed(self, data: bytes) -> None:
        """Take in what came; raises WireError where that is not HTTP."""
        if self._left:
            data, self._left = self._left + data, b""
        if not self.status:
            data = self._read_head(data)
        if self.complete or not self.status:
            self.reusable = self.reusable and not data
        elif self._chunked:
            self._read_chunks(data)
        elif data:
            self._read_plain(data)

    def end(self) -> None:
        """The connection is closed; that completes an answer whose length nobody said."""
        self.reusable = False
        self.complete = self.complete or (bool(self.status) and self._wanted == _UNTIL_CLOSED)

    def take(self) -> bytes:
        """What has come of the body since it was last taken."""
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # --- The head ----------------------------------------------------------------------------

    def _read_head(self, data: bytes) -> bytes:
        """Read the head, if it is whole; what comes after it."""
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _LONGEST_HEAD or not b"HTTP/".startswith(data[:5]):
                    raise WireError("what came is no HTTP answer")
                self._left = data
                return b""
            status = self._parse_head(data[:end].decode("latin-1").split("\r\n"))
            data = data[end + 4 :]
            if status >= 200:  # else it only says that the answer is yet to come
                self.status = status
                return data

    def _parse_head(self, lines: list[str]) -> int:
        version, _, rest = lines[0].partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise WireError("what came is no HTTP answer")
        self.headers = headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status, self.reason = int(rest[:3]), rest[4:]
        self.reusable = version == "HTTP/1.1" and headers.get("connection") != "close"
        self._chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        if self.bodiless or status in (204, 304):
            self.complete = status >= 200
        elif not self._chunked:
            self._wanted = _number(headers.get("content-length"), base=10)
            self.complete = self._wanted == 0 and status >= 200
            self.reusable = self.reusable and self._wanted != _UNTIL_CLOSED
        return status

    # --- The body ----------------------------------------------------------------------------

    def _read_plain(self, data: bytes) -> None:
        if self._wanted == _UNTIL_CLOSED:
            self._pieces.append(data)
            return
        piece = data[: self._wanted]
        self._pieces.append(piece)
        self._wanted -= len(piece)
        self.complete = self._wanted == 0
        self.reusable = self.reusable and len(piece) == len(data)

    def _read_chunks(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._wanted:
                piece = data[at : at + self._wanted]
                self._pieces.append(piece)
                self._wanted -= len(piece)
                at += len(piece)
                continue
            line = at + self._skip
            end = data.find(b"\r\n", line)
            if end < 0:
                break
            size = _number(data[line:end].partition(b";")[0], base=16)
            if size == 0:
                # Fields may follow, and then an empty line.
                last = data.find(b"\r\n\r\n", line)
                if last < 0:
                    break
                self.complete, at = True, last + 4
                break
            self._wanted, self._skip, at = size, 2, end + 2
        self._left = data[at:]
        if self.complete:
            self.reusable = self.reusable and not self._left
        elif len(self._left) > _LONGEST_SIZE:
            raise WireError("a chunk of the answer has no length")


def _number(text: str | bytes | None, *, base: int) -> int:
    if text is None:
        return _UNTIL_CLOSED
    try:
        number = int(text, base)
    except ValueError:
        number = _UNTIL_CLOSED
    if number < 0:
        raise WireError("the answer does not say how long it is")
    return number


class Rhythm:
    """The moments at which the connections of one client are read while events trickle in."""

    __slots__ = ("_at", "_size")

    def __init__(self) -> None:
        self._at = 0.0  # the last moment that was chosen
        self._size = 0  # bytes that came since the one before

    def beat(self, now: float, size: int) -> float:
        """So many bytes came: when to read on."""
        if now < self._at:
            self._size += size
            return self._at
        self._size = size
        return self._choose(now)

    def following(self, now: float) -> float | None:
        """When to look for an answer; None for at once, nothing being read anyway."""
        if now < self._at:
            return self._at
        return self._choose(now) if now < self._at + GATHER else None

    def _choose(self, now: float) -> float:
        interval = 2 * GATHER if self._size > _STREAM else GATHER
        self._at = (now // interval + 1) * interval
        return self._at


class Connection(asyncio.Protocol):
    """A connection to a server; one exchange at a time."""

    def __init__(self, rhythm: Rhythm | None = None) -> None:
        self.closed = False
        self.idle_since = 0.0
        self._rhythm = rhythm or Rhythm()
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None  # as far as the kernel is asked to keep quiet
        self._answer: Answer | None = None
        self._error: WireError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._gathering = False
        self._paused = False
        self._read_at: float | None = None  # when to read again; None while we do

    # --- What we ask -------------------------------------------------------------------------

    async def ask(self, request: bytes, *, bodiless: bool = False, urgent: bool = True) -> Answer:
        """Send a request and wait for the head of its answer; raises WireError.

        What is not urgent is read together with whatever else trickles in.
        """
        answer = self._answer = Answer(bodiless=bodiless)
        if self._transport is not None:
            self._transport.write(request)
        self._read_again()
        if not urgent:
            self._read_at = self._rhythm.following(asyncio.get_running_loop().time())
            if self._read_at is not None:
                self._keep_quiet(_BULK)
        while not answer.status:
            await self.more()
        return answer

    async def more(self) -> None:
        """Wait until more of the answer is there; raises WireError when the connection breaks."""
        self._require_hope()
        loop = asyncio.get_running_loop()
        if self._read_at is not None:
            loop.call_at(self._read_at, self._read_again)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._require_hope()

    def expire(self) -> None:
        """Give up: the time for an answer is over."""
        if self._error is None:
            self._error = WireError("no answer in time")
        self.close()
        self._wake()

    def gather(self) -> None:
        """Read what trickles in at intervals: the answer is a stream."""
        self._gathering = True

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, name: str) -> None:
        """Go on in TLS with the server of that name, beyond the proxy we are connected to."""
        assert self._transport is not None
        self._transport = await asyncio.get_running_loop().start_tls(
            self._transport, self, context, server_hostname=name
        )

    # --- What comes --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._answer is None or self._answer.complete:
            self.close()  # nobody asked for it
            return
        try:
            self._answer.feed(data)
        except WireError as error:
            self._error = error
            self.close()
        if self._gathering and not self._answer.complete:
            self._pause(len(data))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.closed = True
        begun = self._answer is not None and self._answer.status
        if self._answer is not None:
            self._answer.end()
        if self._error is None:
            words = "broke" if begun else "was closed before an answer came"
            self._error = WireError(f"the connection {words}{f': {exc}' if exc else ''}")
        self._wake()

    def _require_hope(self) -> None:
        if self._error is not None and not (self._answer is not None and self._answer.complete):
            raise self._error

    def _pause(self, size: int) -> None:
        if self._read_at is None and self._alive is not None:
            self._alive.pause_reading()
            self._paused = True
            now = asyncio.get_running_loop().time()
            if size >= _BULK:
                self._read_at = now
            else:
                self._read_at = self._rhythm.beat(now, size)
                self._keep_quiet(_BULK)

    def _read_again(self) -> None:
        if self._read_at is not None and self._alive is not None:
            self._read_at = None
            self._keep_quiet(1)
            if self._paused:
                self._paused = False
                self._alive.resume_reading()

    def _keep_quiet(self, size: int) -> None:
        """Have the kernel wake us only when so many bytes are there, or the connection ends.

        In TLS a paused connection is read all the same, each time that something comes.
        """
        if self._socket is not None:
            with contextlib.suppress(OSError):  # not every system can
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    @property
    def _alive(self) -> asyncio.Transport | None:
        """What we read from, unless it is closed or about to be."""
        transport = self._transport
        gone = self.closed or transport is None or transport.is_closing()
        return None if gone else transport

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
