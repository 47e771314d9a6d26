"""Health: /livez, /readyz and /metrics over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from aiohttp import web

from everynode.clock import Clock
from everynode.controller.metrics import CONTENT_TYPE, Metrics
from everynode.kube.resources import Resource
from everynode.kube.watch.watcher import IDLE_LIMIT
from everynode.log import Log

# Seconds without data after which a watch is not fresh. A working watch receives a bookmark every
# minute; after IDLE_LIMIT without data, the watcher sends the request again.
MAX_SILENCE: Final = IDLE_LIMIT + 30.0
# Seconds without a request or data after which a watch is stuck: only a restart helps.
MAX_INACTIVITY: Final = IDLE_LIMIT + 90.0
# Seconds after which a connection is closed. Responses are short, and Prometheus itself times out
# after ten seconds.
CONNECTION_LIMIT: Final = 30.0
# Beyond this, the oldest connection is closed: many connections must neither use up the file
# descriptors that the controller needs nor block the kubelet's probe.
MAX_CONNECTIONS: Final = 64

Check = Callable[[], str]
log: Final = Log("health")


class AddressError(ValueError):
    """An address that cannot be listened on; the message is one line with what to do."""


class CheckedWatch(Protocol):
    """The fields of a watch that the health checks read."""

    resource: Resource
    missing: bool
    trouble: str
    heard_at: float
    tried_at: float

    @property
    def synced(self) -> bool:
        """Whether its cache has been filled completely."""
        ...


def is_moving(watch: CheckedWatch, clock: Clock) -> Check:
    """Return the liveness check of a watch: it still sends or receives."""

    def check() -> str:
        idle = clock.monotonic() - watch.tried_at
        return f"nothing was asked or heard for {idle:.0f} seconds" if idle > MAX_INACTIVITY else ""

    return check


def is_fresh(watch: CheckedWatch, clock: Clock) -> Check:
    """Return the readiness check of a watch: its cache is up to date."""

    def check() -> str:
        if watch.missing:
            return ""  # the kind is not installed; nothing can be out of date
        trouble = f": {watch.trouble}" if watch.trouble else ""
        if not watch.synced:
            return f"not listed yet{trouble}"
        age = clock.monotonic() - watch.heard_at
        return f"nothing was heard for {age:.0f} seconds{trouble}" if age > MAX_SILENCE else ""

    return check


class Health:
    """The checks of `/livez` and `/readyz`; each returns an error, or an empty text."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_live(self, name: str, check: Check) -> None:
        """Add a liveness check: the kubelet restarts the process when it fails."""
        self._live[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """Add a readiness check: the process is not ready while it fails."""
        self._ready[name] = check

    def add_watch(self, watch: CheckedWatch, clock: Clock) -> None:
        """Add both checks of a watch; several watches may be of the same kind."""
        first = f"watch-{watch.resource.full_name}"
        others = sum(name.startswith(first) for name in self._live)
        name = f"{first}-{others + 1}" if others else first
        self.add_live(name, is_moving(watch, clock))
        self.add_ready(name, is_fresh(watch, clock))

    def live(self) -> dict[str, str]:
        """Return the result of each liveness check by name; empty where it passes."""
        return _run(self._live)

    def ready(self) -> dict[str, str]:
        """Return the result of each readiness check, and of liveness checks that fail, by name."""
        ready = _run(self._ready)
        return ready | {name: text for name, text in self.live().items() if text}


def _run(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: check() for name, check in sorted(checks.items())}


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
    paths = {
        "/livez": _answer(health.live),
        "/healthz": _answer(health.live),
        "/readyz": _answer(health.ready),
    }
    if metrics is not None:
        paths["/metrics"] = _exposition(metrics)
    server = BoundedServer(_route(paths), limit=limit, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    host, port = address
    try:
        await web.TCPSite(runner, host or None, port).start()
    except OSError as error:
        await runner.cleanup()
        # asyncio's own message would repeat the address.
        reason = os.strerror(error.errno) if error.errno else error
        raise AddressError(
            f"{flag}: cannot listen on {host or '*'}:{port}: {reason}; choose another address"
        ) from None
    used: tuple[str, int] = runner.addresses[0][:2]
    log.debug("Answering health checks", host=used[0], port=used[1])
    try:
        yield used
    finally:
        await runner.cleanup()


Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


class BoundedServer(web.Server):
    """An HTTP server that limits the number of connections and the duration of each."""

    def __init__(self, handler: Handler, *, limit: float, **options: Any) -> None:
        super().__init__(handler, **options)
        self._limit = limit  # seconds
        # The oldest first. aiohttp itself has no timeout for the rest of a request, nor for a
        # client that does not read the response.
        self._open: dict[object, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        """Start the time limit of a connection; close the oldest if there are too many."""
        super().connection_made(handler, transport)
        if len(self._open) >= MAX_CONNECTIONS:
            oldest, timer = self._open.pop(next(iter(self._open)))
            timer.cancel()
            oldest.abort()
        timer = asyncio.get_running_loop().call_later(self._limit, transport.abort)
        self._open[handler] = transport, timer

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        """Cancel the time limit of a closed connection."""
        super().connection_lost(handler, exc)
        if handler in self._open:
            self._open.pop(handler)[1].cancel()


def _route(paths: Mapping[str, Handler]) -> Handler:
    async def handle(request: web.BaseRequest) -> web.Response:
        handler = paths.get(request.path)
        if handler is None:
            response = web.Response(text="404 page not found\n", status=404)
        elif request.method not in ("GET", "HEAD"):
            response = web.Response(status=405, headers={"Allow": "GET, HEAD"})
        else:
            response = await handler(request)
        response.force_close()  # one response per connection
        return response

    return handle


def _answer(run: Callable[[], Mapping[str, str]]) -> Handler:
    async def handle(request: web.BaseRequest) -> web.Response:
        results = run()
        failed = [name for name, text in results.items() if text]
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [f"[-]{name} failed: {t}" if t else f"[+]{name} ok" for name, t in results.items()]
        lines.append(f"{request.path[1:]} check {'failed' if failed else 'passed'}")
        return web.Response(text="\n".join(lines) + "\n", status=503 if failed else 200)

    return handle


def _exposition(metrics: Metrics) -> Handler:
    async def handle(_: web.BaseRequest) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    return handle
