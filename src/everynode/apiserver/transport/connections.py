"""Client connections: timeouts, and cancelling a request whose client disconnects.

A client that never completes a request is disconnected after the same times as by kube-apiserver.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from everynode.apiserver.errors import internal_error
from everynode.log_text import describe

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_LOG: Final = logging.getLogger(__name__)
_MAX_LINE_BYTES: Final = 1 << 16  # label selectors can be long
_MAX_HEADERS: Final = 256


class ClientTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds a client may take for each step; the defaults are kube-apiserver's."""

    handshake_seconds: float = 32.0  # to set up TLS
    header_seconds: float = 32.0  # to send the request line and the headers
    body_seconds: float = 60.0  # to send the body
    idle_seconds: float = 90.0  # between two requests
    drain_seconds: float = 10.0  # to send the rest of a rejected body


class ServerConnection(web.RequestHandler):
    """One HTTP connection; it is closed when a client takes too long to send request headers."""

    __slots__ = ("_handling", "_header_seconds", "_timer")

    def __init__(
        self,
        server: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        header_seconds: float,
        **options: Any,
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._header_seconds = header_seconds
        self._handling = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the header timeout of the first request."""
        super().connection_made(transport)
        self._start_header_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer; aiohttp cancels the task that handles the request."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed bytes to the parser; the first bytes of a request start its header timeout."""
        if not self._handling and self._timer is None:
            self._start_header_timer()
        super().data_received(data)

    def request_started(self) -> None:
        """Stop the header timeout: the headers of a request are complete."""
        self._handling = True
        self._stop_timer()

    def request_finished(self) -> None:
        """Note that the response is complete; the next bytes belong to a new request."""
        self._handling = False

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer malformed HTTP (400) and uncaught handler exceptions (500), then close."""
        if request.writer.output_size > 0:
            raise ConnectionError("the response has been started, no other can be sent")
        if status < 500:
            return _close_after(web.Response(status=status, text=f"{status} Bad Request"))
        status_error = internal_error(
            type(exc).__name__ if exc is not None else "the handler failed"
        )
        error_response = status_error.response()
        if exc is not None:
            _LOG.error("request failed: %s", describe(exc))
        answer = web.Response(
            status=status, body=error_response.body, headers=dict(error_response.headers)
        )
        return _close_after(answer)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log one line instead of a traceback."""
        error = kw.get("exc_info")
        text = describe(error) if isinstance(error, BaseException) else str(args[0])
        _LOG.error("connection failed: %s", text)

    def _start_header_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._header_seconds, self._abort_slow_client)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort_slow_client(self) -> None:
        transport = self.transport
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()  # no TLS shutdown: a client that sends nothing does not answer it


class Listener(web.Server):
    """The listening socket of one server; creates a Connection for each client."""

    def __init__(self, handler: Handler, timeouts: ClientTimeouts) -> None:
        super().__init__(handler, handler_cancellation=True)
        self._timeouts = timeouts
        self._listening: asyncio.Server | None = None
        self._loop_used = asyncio.get_running_loop()

    def __call__(self) -> ServerConnection:
        """Return the protocol object of a new connection (asyncio's protocol factory)."""
        return ServerConnection(
            self,
            loop=self._loop_used,
            header_seconds=self._timeouts.header_seconds,
            access_log=None,
            keepalive_timeout=self._timeouts.idle_seconds,
            lingering_time=self._timeouts.drain_seconds,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_LINE_BYTES,
            max_headers=_MAX_HEADERS,
            # kube-apiserver does not decompress bodies; a small one could become gigabytes.
            auto_decompress=False,
        )

    async def listen(self, host: str, port: int, context: Any) -> int:
        """Listen and return the port. Raises OSError."""
        self._listening = await self._loop_used.create_server(
            self,
            host,
            port,
            ssl=context,
            backlog=512,
            ssl_handshake_timeout=self._timeouts.handshake_seconds,
            ssl_shutdown_timeout=1.0,
        )
        return int(self._listening.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self.pre_shutdown()
        await self.shutdown(1.0)


def _close_after(response: web.Response) -> web.Response:
    response.force_close()
    return response
