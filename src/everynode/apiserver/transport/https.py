"""HTTPS transport: authentication, reading bodies, and sending responses and watch streams."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import ssl
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from everynode.apiserver.errors import StatusError, internal_error, timed_out, unauthorized
from everynode.apiserver.request.api_request import is_true
from everynode.apiserver.request.url import TargetError, parse_target
from everynode.apiserver.transport.connections import ClientTimeouts, Listener, ServerConnection
from everynode.apiserver.verbs.dispatch import HEALTH, Api
from everynode.apiserver.verbs.watch import Watch
from everynode.clock import Clock
from everynode.kube.requests import JSON, Request, Response
from everynode.log_text import clean, describe

MAX_BODY_BYTES: Final = 3 << 20  # of a request body, as in kube-apiserver
_SERVED_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]", "kubernetes", "kubernetes.default.svc")
_LOG: Final = logging.getLogger(__name__)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class PortError(Exception):
    """The server cannot listen on the address; the message says why and what to do."""


class HttpsServer:
    """Serves one Api over HTTPS to clients that send the bearer token."""

    def __init__(
        self, api: Api, *, token: str, clock: Clock, timeouts: ClientTimeouts | None = None
    ) -> None:
        self._api = api
        self._token = token.encode()
        self._clock = clock
        self._timeouts = timeouts or ClientTimeouts()
        self._listener: Listener | None = None
        self.port = 0

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return 0 if self._listener is None else len(self._listener.connections)

    async def start(self, *, host: str, port: int, context: ssl.SSLContext) -> None:
        """Listen; port 0 takes any free port. Raises PortError."""
        listener = Listener(self._serve, self._timeouts)
        try:
            self.port = await listener.listen(host, port, context)
        except OSError as error:
            # The operating system's message alone; asyncio's is longer and repeats the address.
            why = os.strerror(error.errno) if error.errno else str(error)
            raise PortError(
                f"cannot listen on {host}:{port}: {why}; stop whatever uses it, or choose another"
            ) from None
        self._listener = listener

    async def stop(self) -> None:
        """End all watches, then stop listening."""
        self._api.stop()
        if self._listener is not None:
            await self._listener.close()
            self._listener = None

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        connection = http.protocol
        assert isinstance(connection, ServerConnection)
        connection.request_started()
        try:
            return await self._answer(http)
        except StatusError as refusal:
            return _http_response(refusal.response())
        except TargetError:
            answer = web.Response(status=400, text="400 Bad Request")
            answer.force_close()
            return answer
        except (ConnectionError, web.RequestPayloadError) as error:
            raise ConnectionError(str(error)) from None  # the client has disconnected
        except Exception as error:
            _LOG.error("request failed: %s %s: %s", *_method_and_path(http), describe(error))
            return _http_response(internal_error(type(error).__name__).response())
        finally:
            connection.request_finished()

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        arrived = self._clock.monotonic()
        path, query = parse_target(http.raw_path)
        self._check_host_and_token(http, path)
        body = await self._read_body(http)
        request = Request(
            method=http.method,
            path=path,
            query=query,
            body=body,
            content_type=_header(http, "Content-Type") or JSON,
            accept=_header(http, "Accept"),
        )
        watched = next((value for name, value in query if name == "watch"), None)
        if request.method == "GET" and is_true(watched):
            answer = await self._api.open(request)
            if isinstance(answer, Watch):
                return await _stream_watch(http, answer)
            return _http_response(answer)
        agent = _header(http, "User-Agent") or "unknown"
        return _http_response(await self._api.handle(request, agent=agent, arrived=arrived))

    def _check_host_and_token(self, http: web.BaseRequest, path: str) -> None:
        """Require a known Host header (against DNS rebinding) and the bearer token."""
        if not _is_served_host(http.headers.get("Host", "")):
            raise StatusError(403, "Forbidden", "the Host header names a server that this is not")
        if path in HEALTH:
            return
        sent = _bearer_token(http.headers.get("Authorization", ""))
        if not hmac.compare_digest(sent, self._token):
            raise unauthorized()

    async def _read_body(self, http: web.BaseRequest) -> bytes:
        """Read the whole body, within `body_seconds` and MAX_BODY_BYTES."""
        expected = http.headers.get("Expect", "")
        if expected and expected.lower() != "100-continue":
            raise StatusError(417, "", "only 100-continue can be expected of this server")
        if not http.can_read_body:
            return b""
        if (http.content_length or 0) > MAX_BODY_BYTES:
            raise _too_large()
        if expected and http.transport is not None:
            http.transport.write(_CONTINUE)
        chunks = []
        size = 0
        try:
            async with asyncio.timeout(self._timeouts.body_seconds):
                async for chunk in http.content.iter_any():
                    size += len(chunk)
                    if size > MAX_BODY_BYTES:
                        raise _too_large()
                    chunks.append(chunk)
        except TimeoutError:
            raise timed_out() from None
        return b"".join(chunks)


def _bearer_token(header: str) -> bytes:
    """Return the token of an Authorization header; the scheme is case-insensitive."""
    scheme, _, rest = header.strip().partition(" ")
    token = rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
    return token.encode(errors="surrogateescape")


def _header(http: web.BaseRequest, name: str) -> str:
    """Return a header as text; bytes that are not UTF-8 become U+FFFD."""
    value = http.headers.get(name, "")
    if value.isascii():
        return value
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _method_and_path(http: web.BaseRequest) -> tuple[str, str]:
    """Return method and path of a request, cleaned of control characters for the log."""
    return clean(http.method), clean(http.raw_path.partition("?")[0])


def _is_served_host(header: str) -> bool:
    host, _, port = header.rpartition(":")
    return header in _SERVED_HOSTS or (host in _SERVED_HOSTS and port.isdigit())


def _too_large() -> StatusError:
    message = f"Request entity too large: limit is {MAX_BODY_BYTES}"
    return StatusError(413, "RequestEntityTooLarge", message, details={})


def _http_response(response: Response) -> web.Response:
    return web.Response(
        status=response.status, body=response.body, headers=_with_cache_control(response.headers)
    )


def _with_cache_control(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Cache-Control": "no-cache, private", **headers}


async def _stream_watch(http: web.BaseRequest, watch: Watch) -> web.StreamResponse:
    """Send a watch line by line; headers go out before the first event, as client-go expects."""
    stream = web.StreamResponse(
        status=200, headers=_with_cache_control({"content-type": "application/json"})
    )
    stream.enable_chunked_encoding()
    try:
        await stream.prepare(http)
        while lines := await watch.next():
            lines.append(b"")
            await stream.write(b"\n".join(lines))
        await stream.write_eof()
    except ConnectionError:
        pass  # the client has disconnected
    except Exception as error:
        _LOG.error("watch failed: %s %s: %s", *_method_and_path(http), describe(error))
        raise ConnectionError("the watch failed") from None
    finally:
        watch.close()
    return stream
