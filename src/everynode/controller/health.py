"""Whether we are alive and ready, and what Prometheus asks for, over HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from aiohttp import web

from everynode.clock import Clock
from everynode.controller.log import Log
from everynode.controller.metrics import CONTENT_TYPE, Metrics
from everynode.kube.resources import Resource
from everynode.kube.watch import IDLE_LIMIT

# A watch that works is heard of every minute, and asked again when it is not.
FRESH: Final = IDLE_LIMIT + 30.0
# A watch that has not even asked for so long is stuck, and only a restart will free it.
STUCK: Final = IDLE_LIMIT + 90.0

Check = Callable[[], str]
log: Final = Log("health")


class AddressError(ValueError):
    """An address that cannot be listened on; one line that says what to do."""


class WatchState(Protocol):
    """As much of a watch as its health is told from."""

    resource: Resource
    missing: bool
    trouble: str
    heard_at: float
    tried_at: float

    @property
    def synced(self) -> bool:
        """Whether its copy is whole."""
        ...


def is_moving(watch: WatchState, clock: Clock) -> Check:
    """Return the check whether a watch still does anything at all."""

    def check() -> str:
        idle = clock.monotonic() - watch.tried_at
        return f"nothing was asked or heard for {idle:.0f} seconds" if idle > STUCK else ""

    return check


def is_fresh(watch: WatchState, clock: Clock) -> Check:
    """Return the check whether a watch keeps its copy up to date."""

    def check() -> str:
        if watch.missing:
            return ""  # the kind is not installed; nothing can be out of date
        trouble = f": {watch.trouble}" if watch.trouble else ""
        if not watch.synced:
            return f"not listed yet{trouble}"
        age = clock.monotonic() - watch.heard_at
        return f"nothing was heard for {age:.0f} seconds{trouble}" if age > FRESH else ""

    return check


class Health:
    """The checks behind `/livez` and `/readyz`; each gives an empty text when all is well."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_live(self, name: str, check: Check) -> None:
        """Have the process restarted when this fails."""
        self._live[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """Have the process reported as not ready when this fails."""
        self._ready[name] = check

    def add_watch(self, watch: WatchState, clock: Clock) -> None:
        """Check a watch for both; a kind may be watched more than once."""
        first = f"watch-{watch.resource.full_name}"
        others = sum(name.startswith(first) for name in self._live)
        name = f"{first}-{others + 1}" if others else first
        self.add_live(name, is_moving(watch, clock))
        self.add_ready(name, is_fresh(watch, clock))

    def live(self) -> dict[str, str]:
        """Return what is wrong with our life, by check; empty texts where nothing is."""
        return _run(self._live)

    def ready(self) -> dict[str, str]:
        """Return what keeps us from being ready; whoever is not alive is not ready either."""
        ready = _run(self._ready)
        return ready | {name: text for name, text in self.live().items() if text}


def _run(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: check() for name, check in sorted(checks.items())}


def parse_address(address: str, *, flag: str) -> tuple[str, int] | None:
    """Return host and port of `host:port`, `:port` or a port alone; None for `0` and `off`.

    A port alone is on loopback; `:port` is on every address, of either family: an empty host.
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
    address: tuple[str, int], *, health: Health, metrics: Metrics | None, flag: str = "address"
) -> AsyncIterator[tuple[str, int]]:
    """Answer on an address while the context lasts; gives the address really used."""
    app = web.Application()
    app.router.add_get("/livez", _answer(health.live))
    app.router.add_get("/healthz", _answer(health.live))
    app.router.add_get("/readyz", _answer(health.ready))
    if metrics is not None:
        app.router.add_get("/metrics", _exposition(metrics))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    host, port = address
    try:
        await web.TCPSite(runner, host or None, port).start()
    except OSError as error:
        await runner.cleanup()
        # The text of the loop names the address once more.
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


Handler = Callable[[web.Request], Awaitable[web.Response]]


def _answer(run: Callable[[], Mapping[str, str]]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        results = run()
        failed = [name for name, text in results.items() if text]
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [f"[-]{name} failed: {t}" if t else f"[+]{name} ok" for name, t in results.items()]
        lines.append(f"{request.path[1:]} check {'failed' if failed else 'passed'}")
        return web.Response(text="\n".join(lines) + "\n", status=503 if failed else 200)

    return handle


def _exposition(metrics: Metrics) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    return handle
