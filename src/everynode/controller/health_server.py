"""Health server: answers /livez, /readyz and /metrics over HTTP.

A general HTTP library would take twelve megabytes of memory for these few paths.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import parse_qs

from httptools import (
    HttpParserError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)

from everynode.controller.health import Health
from everynode.controller.metrics import CONTENT_TYPE, Metrics
from everynode.log import Log

# Seconds after which a connection is closed. Responses are short, and Prometheus itself times out
# after ten seconds.
CONNECTION_LIMIT: Final = 30.0
# Beyond this, the oldest connection is closed: many connections must neither use up the file
# descriptors that the controller needs nor block the kubelet's probe.
MAX_CONNECTIONS: Final = 64
MAX_REQUEST_BYTES: Final = 64 * 1024  # of a request with its headers and its body
_PLAIN_TEXT: Final = "text/plain; charset=utf-8"
log: Final = Log("health")


class AddressError(ValueError):
    """An address that cannot be listened on; the message is one line with what to do."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """A response to one request."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = _PLAIN_TEXT

    def encode(self, *, head_only: bool) -> bytes:
        """Return the response as it is sent; to HEAD without the body."""
        allowed = "Allow: GET, HEAD\r\n" if self.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n"
            f"{allowed}Connection: close\r\n\r\n"
        )
        return head.encode("latin-1") + (b"" if head_only else self.body)


_BAD_REQUEST: Final = HealthAnswer(
    HTTPStatus.BAD_REQUEST, b"not a request that is understood here\n"
)
_NOT_FOUND: Final = HealthAnswer(HTTPStatus.NOT_FOUND, b"404 page not found\n")
_NOT_ALLOWED: Final = HealthAnswer(HTTPStatus.METHOD_NOT_ALLOWED)
Handler = Callable[[str, str], HealthAnswer]  # from the path and the query


def parse_address(address: str, *, flag: str) -> tuple[str, int] | None:
    """Return host and port of `host:port`, `:port` or a port alone; None for `0` and `off`.

    A port alone listens on loopback; `:port` (an empty host) on every IPv4 and IPv6 address.
    """
    if address in ("0", "off", ""):
        return None
    host, colon, port = address.rpartition(":")
    host = host.strip("[]") or ("" if colon else "127.0.0.1")
    if not port.isdecimal() or int(port) > 65535:
        raise AddressError(f"{flag} {address}: write it as host:port, as :port, or as 0 for none")
    return host, int(port)


@asynccontextmanager
async def serve(
    address: tuple[str, int],
    *,
    health: Health,
    metrics: Metrics | None,
    flag: str = "address",
    limit: float = CONNECTION_LIMIT,
) -> AsyncIterator[tuple[str, int]]:
    """Serve on an address inside a `with` block; yields the address that is listened on."""
    paths: dict[str, Handler] = {
        "/livez": partial(_report, health.live),
        "/healthz": partial(_report, health.live),
        "/readyz": partial(_report, health.ready),
    }
    if metrics is not None:
        paths["/metrics"] = partial(_expose, metrics)
    connections = OpenConnections(limit)
    host, port = address
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: HealthConnection(paths, connections), host or None, port
        )
    except OSError as error:
        # asyncio's own message would repeat the address.
        reason = os.strerror(error.errno) if error.errno else error
        raise AddressError(
            f"{flag}: cannot listen on {host or '*'}:{port}: {reason}; choose another address"
        ) from None
    used: tuple[str, int] = server.sockets[0].getsockname()[:2]
    log.debug("Answering health checks", host=used[0], port=used[1])
    try:
        yield used
    finally:
        server.close()
        connections.abort_all()
        await server.wait_closed()


class OpenConnections:
    """The connections to one server: their number and the duration of each are limited."""

    def __init__(self, limit: float) -> None:
        self._limit = limit  # seconds
        self._open: dict[asyncio.Transport, asyncio.TimerHandle] = {}  # the oldest first

    def add(self, transport: asyncio.Transport) -> None:
        """Start the time limit of a connection; close the oldest if there are too many."""
        if len(self._open) >= MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            self.discard(oldest)
            oldest.abort()
        timer = asyncio.get_running_loop().call_later(self._limit, transport.abort)
        self._open[transport] = timer

    def discard(self, transport: asyncio.Transport) -> None:
        """Cancel the time limit of a closed connection."""
        timer = self._open.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def abort_all(self) -> None:
        """Close all connections."""
        for transport in list(self._open):
            self.discard(transport)
            transport.abort()


class HealthConnection(asyncio.Protocol):
    """One connection: one request, one response, and it is closed."""

    def __init__(self, paths: Mapping[str, Handler], connections: OpenConnections) -> None:
        self._paths = paths
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        # The parser refers to this object. It is dropped with the answer, so that no reference
        # cycle is left to the garbage collector.
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._received = 0
        self._url = b""

    # --- Callbacks of asyncio ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self._transport)

    def data_received(self, data: bytes) -> None:
        """A part of the request arrived; what follows a request is ignored."""
        if self._parser is None:
            return
        self._received += len(data)
        try:
            if self._received > MAX_REQUEST_BYTES:
                raise HttpParserError("too long")
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._answer(_BAD_REQUEST)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._parser = None
        if self._transport is not None:
            self._connections.discard(self._transport)

    # --- Callbacks of the parser -------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        """The target of the request, or a piece of it."""
        self._url += url

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._parser is None:
            return
        method = self._parser.get_method()
        try:
            url = parse_url(self._url)
        except HttpParserInvalidURLError:
            self._answer(_BAD_REQUEST)
            return
        path, query = ((part or b"").decode("latin-1") for part in (url.path, url.query))
        handler = self._paths.get(path)
        if handler is None:
            answer = _NOT_FOUND
        elif method not in (b"GET", b"HEAD"):
            answer = _NOT_ALLOWED
        else:
            answer = handler(path, query)
        self._answer(answer, head_only=method == b"HEAD")

    def _answer(self, answer: HealthAnswer, *, head_only: bool = False) -> None:
        """Send the response, unless there was one, and close the connection."""
        if self._parser is not None and self._transport is not None:
            self._parser = None
            self._transport.write(answer.encode(head_only=head_only))
            self._transport.close()


def _report(run: Callable[[], Mapping[str, str]], path: str, query: str) -> HealthAnswer:
    results = run()
    failed = any(results.values())
    if not failed and "verbose" not in parse_qs(query, keep_blank_values=True):
        return HealthAnswer(HTTPStatus.OK, b"ok")
    lines = [f"[-]{name} failed: {t}" if t else f"[+]{name} ok" for name, t in results.items()]
    lines.append(f"{path[1:]} check {'failed' if failed else 'passed'}")
    status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return HealthAnswer(status, ("\n".join(lines) + "\n").encode())


def _expose(metrics: Metrics, _path: str, _query: str) -> HealthAnswer:
    return HealthAnswer(HTTPStatus.OK, metrics.exposition(), CONTENT_TYPE)
