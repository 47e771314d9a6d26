"""The API over HTTPS on loopback: who may ask, and how answers are sent."""

from __future__ import annotations

import hmac
import os
import ssl
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from everynode.clock import Clock
from everynode.cluster.calls import is_true
from everynode.cluster.errors import Refusal, bad_request, unauthorized
from everynode.cluster.rest import HEALTH, Api
from everynode.cluster.watches import Watch
from everynode.kube.requests import JSON, Request, Response

MOST_BYTES: Final = 3 << 20  # of a request body, as the real server has it
_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]", "kubernetes", "kubernetes.default.svc")
_LONGEST_LINE: Final = 1 << 16  # selectors can be long


class PortError(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class HttpsServer:
    """Serves one API to whoever has the token."""

    def __init__(self, api: Api, *, token: str, clock: Clock) -> None:
        self._api = api
        self._token = f"Bearer {token}".encode()
        self._clock = clock
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self, *, host: str, port: int, context: ssl.SSLContext) -> None:
        """Listen; port 0 takes any that is free."""
        server = web.Server(
            self._serve,
            access_log=None,
            keepalive_timeout=300.0,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=context, backlog=512)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            # In the system's few words; asyncio adds its own.
            why = os.strerror(error.errno) if error.errno else str(error)
            raise PortError(
                f"cannot listen on {host}:{port}: {why}; stop whatever uses it, or choose another"
            ) from None
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """End all watches and stop listening."""
        self._api.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        arrived = self._clock.monotonic()
        refusal = self._refuse(http)
        if refusal is not None:
            return _whole(refusal.response())
        try:
            request = await _request(http)
        except Refusal as failure:
            return _whole(failure.response())
        if request.method == "GET" and is_true(http.query.get("watch")):
            answer = await self._api.open(request)
            if isinstance(answer, Watch):
                return await _stream(http, answer)
            return _whole(answer)
        agent = http.headers.get("User-Agent", "") or "unknown"
        return _whole(await self._api.handle(request, agent=agent, arrived=arrived))

    def _refuse(self, http: web.BaseRequest) -> Refusal | None:
        """Another site's page must not reach us through its visitor's browser."""
        if not _known_host(http.headers.get("Host", "")):
            return Refusal(403, "Forbidden", "the Host header names a server that this is not")
        if http.path in HEALTH:
            return None
        sent = http.headers.get("Authorization", "").encode()
        return None if hmac.compare_digest(sent, self._token) else unauthorized()


def _known_host(header: str) -> bool:
    host, _, port = header.rpartition(":")
    return header in _HOSTS or (host in _HOSTS and port.isdigit())


async def _request(http: web.BaseRequest) -> Request:
    body = b""
    if http.can_read_body:
        if (http.content_length or 0) > MOST_BYTES:
            raise _too_large()
        chunks = []
        size = 0
        async for chunk in http.content.iter_any():
            size += len(chunk)
            if size > MOST_BYTES:
                raise _too_large()
            chunks.append(chunk)
        body = b"".join(chunks)
    if http.headers.get("Content-Encoding", "identity") != "identity":
        raise bad_request("compressed bodies are not understood here")
    return Request(
        method=http.method,
        path=http.path,
        query=tuple(http.query.items()),
        body=body,
        content_type=http.headers.get("Content-Type", JSON),
        accept=http.headers.get("Accept", ""),
    )


def _too_large() -> Refusal:
    message = f"Request entity too large: limit is {MOST_BYTES}"
    return Refusal(413, "RequestEntityTooLarge", message, details={})


def _whole(response: Response) -> web.Response:
    return web.Response(
        status=response.status, body=response.body, headers=_headers(response.headers)
    )


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Cache-Control": "no-cache, private", **headers}


async def _stream(http: web.BaseRequest, watch: Watch) -> web.StreamResponse:
    """Send a watch line by line; headers go out at once, so that the client knows it is heard."""
    stream = web.StreamResponse(status=200, headers=_headers({"content-type": "application/json"}))
    stream.enable_chunked_encoding()
    try:
        await stream.prepare(http)
        while lines := await watch.next():
            lines.append(b"")
            await stream.write(b"\n".join(lines))
        await stream.write_eof()
    except ConnectionError:
        pass  # the client has gone
    finally:
        watch.close()
    return stream
