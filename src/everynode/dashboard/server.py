"""The server of the page: static files, the API of the page, and server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from aiohttp import web

from everynode.api.daemonset import DaemonSet
from everynode.api.decode import DecodeError
from everynode.api.nulls import drop_nulls
from everynode.api.validation.names import dns_label, dns_subdomain
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.dashboard.feed import Feed, Feeds, encode
from everynode.dashboard.guard import HEADERS, Guard, Refusal
from everynode.dashboard.model import FLAVOURS, Object, row_document
from everynode.dashboard.sets import SetList
from everynode.errors import UserError, one_line
from everynode.inspect.evaluate import Evaluation
from everynode.inspect.explain import explain_node
from everynode.inspect.fleet import RevisionInfo
from everynode.kube import errors, verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.log_text import describe

PAGE: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_KEEP_ALIVE: Final = 15.0
_FIRST_ANSWER: Final = 20.0  # seconds until a set must have been evaluated
_SLOW: Final = 20.0  # seconds that a viewer may take to read one message
_LIST_PAUSE: Final = 1.0  # seconds between two lists of sets
_MOST_DIGITS: Final = 18
_LOG: Final = logging.getLogger(__name__)

Key = tuple[str, str, str]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Dashboard:
    """The handlers of the page's requests."""

    def __init__(
        self, client: Client, clock: Clock, *, cluster: str, namespaces: tuple[str, ...] = ()
    ) -> None:
        self.sets = SetList(client.transport, clock, namespaces)
        self.feeds = Feeds(client.transport, clock)
        self._client = client
        self._clock = clock
        self._cluster = cluster
        self._namespaces = namespaces

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that are served."""
        one = "/api/set/{kind}/{namespace}/{name}"
        return [
            web.get("/", _index),
            web.get("/page/{name}", _static),
            web.get("/api/sets", self._sets),
            web.get("/api/sets/stream", self._sets_stream),
            web.get(f"{one}/stream", self._stream),
            web.get(f"{one}/nodes", self._nodes),
            web.get(f"{one}/node/{{node}}", self._node),
            web.get(f"{one}/diff", self._diff),
        ]

    # --- The list of sets ---------------------------------------------------------------------

    def _sets_document(self) -> Object:
        head = {"cluster": self._cluster, "actions": False, "now": int(self._clock.now())}
        return {**head, **self.sets.document()}

    async def _sets(self, request: web.Request) -> web.StreamResponse:
        await self.sets.ready(_FIRST_ANSWER)
        return _json(self._sets_document())

    async def _sets_stream(self, request: web.Request) -> web.StreamResponse:
        return await _send(request, self._set_events())

    async def _set_events(self) -> AsyncIterator[bytes]:
        await self.sets.ready(_FIRST_ANSWER)
        told: Object = {}
        while True:
            known = self.sets.document()
            if known != told:
                told = known
                yield encode("sets", self._sets_document())
                await self._clock.sleep(_LIST_PAUSE)
            else:
                await self.sets.changed()

    # --- One set ------------------------------------------------------------------------------

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        last = _last_event(request)
        async with self._view(request) as feed:
            return await _send(request, feed.events(last))

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        async with self._view(request) as feed:
            await feed.ready(_FIRST_ANSWER)
            assert feed.evaluation is not None
            assert feed.model is not None
            state, reason = request.query.get("state"), request.query.get("reason")
            rows = zip(feed.evaluation.fleet.rows, feed.model.states, strict=False)
            found = [
                row_document(row, number)
                for row, number in rows
                if state in (None, str(number)) and reason in (None, row.reason)
            ]
        return _json({"rows": found})

    async def _node(self, request: web.Request) -> web.StreamResponse:
        node = request.match_info["node"]
        async with self._view(request) as feed:
            await feed.ready(_FIRST_ANSWER)
            assert feed.evaluation is not None
            assert feed.model is not None
            document = _explain(feed.evaluation, node, self._clock.now())
            states = dict(zip(feed.model.names, feed.model.states, strict=True))
        return _json({**document, "state": states.get(node, 0)})

    async def _diff(self, request: web.Request) -> web.StreamResponse:
        async with self._view(request) as feed:
            await feed.ready(_FIRST_ANSWER)
            assert feed.evaluation is not None
            revisions = {str(each.number): each for each in feed.evaluation.fleet.revisions}
        before = revisions.get(request.query.get("from", ""))
        after = revisions.get(request.query.get("to", ""))
        if before is None or after is None:
            known = ", ".join(revisions) or "none"
            raise Refusal(404, "there is no such revision", f"there are: {known}")
        return _json({"text": _unified(before, after)})

    @asynccontextmanager
    async def _view(self, request: web.Request) -> AsyncIterator[Feed]:
        key = _key(request)
        ds = await self._read(key)
        async with self.feeds.view(key, ds) as feed:
            yield feed

    async def _read(self, key: Key) -> DaemonSet:
        """Return the set; the API server decides whether it may be seen."""
        kind, namespace, name = key
        if self._namespaces and namespace not in self._namespaces:
            raise Refusal(403, f"this dashboard does not show {namespace}", "start it with -n")
        flavour = FLAVOURS[kind]
        request = verbs.get(resource_of(flavour), name, namespace=namespace)
        raw = await self._client.read(request, bytes, attempts=2)
        try:
            return decode_daemonset(raw, flavour=flavour)
        except DecodeError as error:
            raise Refusal(503, f"the set cannot be read: {error}", "look at its spec") from None


def _key(request: web.Request) -> Key:
    """Return kind, namespace and name of a path; nothing else gets into a request."""
    kind, namespace, name = (request.match_info[part] for part in ("kind", "namespace", "name"))
    if kind not in FLAVOURS or any(dns_label(namespace)) or any(dns_subdomain(name)):
        raise Refusal(400, "no set can have this name", "go back to the list of sets")
    return kind, namespace, name


def _last_event(request: web.Request) -> int | None:
    text = request.headers.get("Last-Event-ID") or request.query.get("from", "")
    known = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if known else None


def _explain(evaluation: Evaluation, node: str, now: float) -> Object:
    found = explain_node(evaluation, node, now)
    if found is None:
        raise Refusal(404, "there is no such node", "it may have left the cluster")
    row, ds = found.row, evaluation.fleet.ds
    command = f"kubectl describe pod {row.pod} -n {ds.namespace}" if row.pod else ""
    return {
        "node": row.node,
        "reason": row.reason,
        "message": row.message,
        "facts": [{"title": fact.word, "text": fact.text} for fact in found.facts],
        "events": [],
        "command": command or f"kubectl describe node {row.node}",
        "story": [],
    }


def _unified(before: RevisionInfo, after: RevisionInfo) -> str:
    lines = difflib.unified_diff(
        _template(before).splitlines(),
        _template(after).splitlines(),
        f"revision {before.number}",
        f"revision {after.number}",
        lineterm="",
    )
    return "\n".join(lines)


def _template(revision: RevisionInfo) -> str:
    if not revision.template:
        return ""
    decoded = drop_nulls(msgspec.json.decode(revision.template))
    return yaml.safe_dump(decoded, sort_keys=False, allow_unicode=True)


# --- Answers -------------------------------------------------------------------------------------


def _json(content: Any, status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(status=status, body=body, content_type="application/json")


async def _index(request: web.Request) -> web.StreamResponse:
    return _file(request, "index.html")


async def _static(request: web.Request) -> web.StreamResponse:
    return _file(request, request.match_info["name"])


def _file(request: web.Request, name: str) -> web.Response:
    """Return a file of the page; a name is looked up, never made part of a path."""
    path = {each.name: each for each in PAGE.iterdir()}.get(name) if PAGE.is_dir() else None
    if path is None or path.suffix not in _TYPES:
        raise Refusal(404, "there is no such file", "open the dashboard's first page")
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={**headers, "Content-Type": _TYPES[path.suffix]})


async def _send(request: web.Request, events: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send events until the viewer leaves; one that does not read is cut off."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    pending: asyncio.Future[bytes] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait([pending], timeout=_KEEP_ALIVE)
            data = b": still here\n\n"
            if done:
                data, pending = pending.result(), None
            async with asyncio.timeout(_SLOW):
                await response.write(data)
    except StopAsyncIteration:
        pending = None
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait([pending])
    return response


def _of_server(error: KubeError) -> Refusal:
    message = one_line(error.message)
    match error:
        case errors.Forbidden():
            return Refusal(403, message, "ask a cluster administrator for this right")
        case errors.NotFound():
            return Refusal(404, message, "go back to the list of sets")
    return Refusal(503, message, "check that the API server runs and that you are logged in")


def _guarded(guard: Callable[[], Guard]) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: Answer) -> web.StreamResponse:
        try:
            guard().check(request.method, request.headers)
            response = await handler(request)
        except Refusal as refusal:
            response = _json({"error": refusal.error, "help": refusal.help}, refusal.status)
        except KubeError as error:
            told = _of_server(error)
            response = _json({"error": told.error, "help": told.help}, told.status)
        except web.HTTPException as error:
            document = {"error": error.reason, "help": "open the dashboard's first page"}
            response = _json(document, error.status)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            _LOG.error("request failed: %s", describe(error))
            document = {"error": "the dashboard failed", "help": "look at what it printed"}
            response = _json(document, 500)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    return check


@asynccontextmanager
async def serve(dashboard: Dashboard, port: int, *, option: str = "--port") -> AsyncIterator[int]:
    """Serve the page on 127.0.0.1 inside a `with` block; yields the port. Raises UserError.

    `option` is the one with which the user chose the port.
    """
    listening = 0
    app = web.Application(middlewares=[_guarded(lambda: Guard(listening))], client_max_size=1 << 16)
    app.add_routes(dashboard.routes())
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    watching = asyncio.create_task(dashboard.sets.run())
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        except OSError as error:
            raise UserError(
                f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another {option}"
            ) from None
        listening = int(runner.addresses[0][1])
        yield listening
    finally:
        await runner.cleanup()
        await dashboard.feeds.close()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
