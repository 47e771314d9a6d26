"""HTTP/1.1 client connections: one request at a time, responses parsed as they arrive.

A rollout is made of many small requests, and of events that trickle in. A general HTTP library
takes about twice the CPU for a request (bench/client.py). Responses are parsed by llhttp, the
parser of Node.js, and every length that a server or a proxy may choose is bounded here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from everynode.kube.http.read_batching import BULK_BYTES, ReadBatcher

_FEW_PIECES: Final = 32  # pieces of a body that one read may leave behind
# The parser copies the body; copies of more than this make the allocator ask the system for memory
# and give it back each time.
_SLICE: Final = 32 * 1024
MAX_HEAD_BYTES: Final = 64 * 1024  # of a response, with all the interim responses before it
MAX_HEADERS: Final = 256
MAX_FRAMING_BYTES: Final = 64 * 1024  # of chunk extensions and trailers without any body data
# Body bytes that are held until they are taken. A page of a list has 500 objects, and even those of
# half a megabyte each fit.
MAX_BODY_BYTES: Final = 256 * 1024 * 1024


class HttpError(Exception):
    """The connection broke, or the data received on it is not HTTP."""


class IncomingResponse:
    """One response, assembled from the pieces in which it arrives.

    The methods that begin with `on_` are called by the parser.
    """

    __slots__ = (
        "_framing_bytes",
        "_head_bytes",
        "_parser",
        "_pieces",
        "_refusal",
        "_size",
        "_until_closed",
        "complete",
        "extra_data",
        "head_only",
        "headers",
        "on_body",
        "reason",
        "reusable",
        "status",
    )

    def __init__(self, *, head_only: bool = False) -> None:
        self.status = 0  # until the head has arrived
        self.reason = ""  # the reason phrase
        self.headers: dict[str, str] = {}  # names in lower case
        self.complete = False
        self.reusable = False  # whether the connection can carry another request afterwards
        self.extra_data = False  # whether data followed the response
        self.head_only = head_only  # a response to CONNECT has no body
        self._pieces: list[bytes] = []
        self._size = 0  # of the pieces, and at most their framing
        self._head_bytes = 0  # of the head and of interim responses
        self._framing_bytes = 0  # received since the last data of the body
        self._refusal = ""  # why this class, not the parser, refuses the response
        self._until_closed = False
        self.on_body: Callable[[bytes], None] = self._pieces.append
        # The parser refers to this object. It is dropped at the end, so that no reference cycle is
        # left to the garbage collector.
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse received data; raises HttpError where it is not HTTP."""
        if not self.status:
            data = self._feed_head(data)
            if not data:
                return
        if self.complete:
            self.extra_data = self.extra_data or bool(data)
            self.reusable = self.reusable and not self.extra_data
            return
        known = len(self._pieces)
        self._parse(data)
        self._check_bounds(known, len(data))

    def end(self) -> None:
        """Note that the server closed the connection: a response without a length is complete."""
        self.reusable = False
        self._parser = None
        self.complete = self.complete or self._until_closed

    def fail(self) -> None:
        """Note that the connection broke, or was given up: no more data will arrive."""
        self.reusable = False
        self._parser = None

    def take(self) -> bytes:
        """Return and forget the body data received since the last call."""
        pieces, self._size = self._pieces, 0
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return data

    def take_pieces(self) -> list[bytes]:
        """Return the same in the pieces in which it arrived, without the cost of joining them."""
        pieces, self._size = self._pieces[:], 0
        self._pieces.clear()
        return pieces

    # --- Feeding the parser ------------------------------------------------------------------

    def _feed_head(self, data: bytes) -> bytes:
        """Parse until the head is complete; return the data that is left to be parsed.

        The limit holds however the head is cut into pieces. A head-only response is fed byte by
        byte: what follows it belongs to another protocol and must not be parsed.
        """
        known = len(self._pieces)
        room = MAX_HEAD_BYTES - self._head_bytes
        if self.head_only:
            at = 0
            while at < len(data) and at < room and not self.status:
                self._parse(data[at : at + 1])
                at += 1
        else:
            at = min(room, len(data))
            self._parse(data if at == len(data) else data[:at])
        self._head_bytes += at
        if self.status:
            self._check_bounds(known, at)
        elif self._head_bytes >= MAX_HEAD_BYTES:
            raise HttpError("the head of the response is too long")
        return data[at:]

    def _parse(self, data: bytes) -> None:
        if self._parser is None:
            raise HttpError("the response goes on after its end")
        try:
            if len(data) <= _SLICE:
                self._parser.feed_data(data)
            else:
                view = memoryview(data)
                for at in range(0, len(data), _SLICE):
                    self._parser.feed_data(view[at : at + _SLICE])
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.complete:
                self._parser = None
                raise HttpError(self._refusal or f"not an HTTP response: {error}") from None
            self.extra_data, self.reusable = True, False
        if self.complete:
            self._parser = None

    def _check_bounds(self, known: int, size: int) -> None:
        """Check the bounds after `size` bytes were parsed; before, there were `known` pieces."""
        pieces = self._pieces
        added = len(pieces) - known
        if added:
            if added > _FEW_PIECES:
                # A body in tiny chunks must not cost an object for each of them.
                pieces[known:] = [b"".join(pieces[known:])]
            self._framing_bytes = 0
            self._size += size
            if self._size > MAX_BODY_BYTES:
                raise HttpError(f"the response is longer than {MAX_BODY_BYTES >> 20} MiB")
        elif not self.complete:
            self._framing_bytes += size
            if self._framing_bytes > MAX_FRAMING_BYTES:
                raise HttpError(
                    f"the response has more than {MAX_FRAMING_BYTES >> 10} KiB of framing "
                    "without any body data"
                )

    # --- Callbacks of the parser -------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A response begins: the first, one after an interim response, or one too many."""
        if self.complete:
            self._refuse("two responses came to one request")
        self.reason = ""

    def on_status(self, text: bytes) -> None:
        """The reason phrase, or a piece of it."""
        self.reason += text.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; those of a trailer are ignored."""
        if not self.status:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").rstrip()
            if len(self.headers) > MAX_HEADERS:
                self._refuse(f"the response has more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        """The head is complete."""
        parser = self._parser
        assert parser is not None
        status = parser.get_status_code()
        if status < 200:
            # An interim response: the real one is yet to come.
            if status < 100 or status == 101:
                self._refuse(f"the server answers {status}, which was not asked for")
            self.headers = {}
            return
        if parser.get_http_version() not in ("1.1", "1.0"):
            self._refuse("the response is of another version of HTTP")
        headers = self.headers
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            self._refuse("the response is encoded in a way that was not asked for")
        self.status = status
        self.reusable = parser.should_keep_alive()
        if self.head_only:
            self.complete = True
        elif coding is None and "content-length" not in headers:
            self._until_closed = status not in (204, 304)

    def on_message_complete(self) -> None:
        """The response is complete, or an interim one is."""
        self.complete = self.status != 0

    def _refuse(self, why: str) -> None:
        self._refusal = why
        raise HttpError(why)


class Connection(asyncio.Protocol):
    """A connection to a server; one request and its response at a time.

    Two kinds of responses are read in batches (read_batching.py): streams, after `batch_reads`, and
    responses to requests that are not urgent. For both, `_read_at` is the moment chosen for the
    next read. Until then the kernel is asked not to wake the process (SO_RCVLOWAT); a stream is
    also paused. `_resume_reading` ends this state. While `_read_at` is None, data is read when it
    arrives.
    """

    def __init__(self, batcher: ReadBatcher | None = None) -> None:
        self.closed = False
        self.idle_since = 0.0
        self._batcher = batcher or ReadBatcher()
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None  # for SO_RCVLOWAT
        self._response: IncomingResponse | None = None
        self._error: HttpError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._batching = False
        self._paused = False
        self._read_at: float | None = None

    # --- Requests ----------------------------------------------------------------------------

    async def send(
        self, request: bytes, *, head_only: bool = False, urgent: bool = True
    ) -> IncomingResponse:
        """Send a request and wait for the head of its response; raises HttpError.

        A response that is not urgent is read together with the events that trickle in.
        """
        response = self._response = IncomingResponse(head_only=head_only)
        if self._transport is not None:
            self._transport.write(request)
        self._resume_reading()
        if not urgent:
            self._read_at = self._batcher.next_response_read(asyncio.get_running_loop().time())
            if self._read_at is not None:
                self._set_wake_threshold(BULK_BYTES)
        while not response.status:
            await self.wait_for_data()
        return response

    async def wait_for_data(self) -> None:
        """Wait until more of the response arrives; raises HttpError when the connection breaks."""
        self._raise_if_broken()
        loop = asyncio.get_running_loop()
        if self._read_at is not None:
            loop.call_at(self._read_at, self._resume_reading)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._raise_if_broken()

    def expire(self) -> None:
        """Close the connection because the time for the response is over."""
        if self._error is None:
            self._error = HttpError("no answer in time")
        self.close()
        self._wake()

    def batch_reads(self) -> None:
        """Read the rest of the response in batches: it is a stream."""
        self._batching = True

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, name: str) -> None:
        """Start TLS with the server of that name, through the proxy we are connected to."""
        assert self._transport is not None
        self._transport = await asyncio.get_running_loop().start_tls(
            self._transport, self, context, server_hostname=name
        )

    # --- Callbacks of asyncio ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        """Data arrived."""
        if self._response is None or self._response.complete:
            self.close()  # no request is waiting for it
            return
        try:
            self._response.feed(data)
        except HttpError as error:
            self._error = error
            self.close()
        if self._batching and not self._response.complete:
            self._pause(len(data))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        begun = self._response is not None and self._response.status
        if self._response is not None and (exc is not None or self.closed):
            self._response.fail()  # a response that we gave up, or a reset cut off, is incomplete
        elif self._response is not None:
            self._response.end()
        self.closed = True
        if self._error is None:
            what = "broke" if begun else "was closed before an answer came"
            self._error = HttpError(f"the connection {what}{f': {exc}' if exc else ''}")
        self._wake()

    # --- Inside ------------------------------------------------------------------------------

    def _raise_if_broken(self) -> None:
        if self._error is not None and not (self._response is not None and self._response.complete):
            raise self._error

    def _pause(self, size: int) -> None:
        """Read no more until the next moment of the batcher; `size` bytes have just arrived."""
        if self._read_at is None and self._open_transport is not None:
            self._open_transport.pause_reading()
            self._paused = True
            now = asyncio.get_running_loop().time()
            if size >= BULK_BYTES:
                self._read_at = now
            else:
                self._read_at = self._batcher.next_read(now, size)
                self._set_wake_threshold(BULK_BYTES)

    def _resume_reading(self) -> None:
        """Read data when it arrives; does nothing while that is so already."""
        if self._read_at is not None and self._open_transport is not None:
            self._read_at = None
            self._set_wake_threshold(1)
            if self._paused:
                self._paused = False
                self._open_transport.resume_reading()

    def _set_wake_threshold(self, size: int) -> None:
        """Have the kernel wake us only when `size` bytes have arrived, or the connection ends.

        Pausing is not enough: in TLS, asyncio reads a paused connection whenever data arrives.
        """
        if self._socket is not None:
            with contextlib.suppress(OSError):  # not every system supports it
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    @property
    def _open_transport(self) -> asyncio.Transport | None:
        """The transport, unless it is closed or about to be."""
        transport = self._transport
        gone = self.closed or transport is None or transport.is_closing()
        return None if gone else transport

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
