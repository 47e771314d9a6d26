"""The server of the page: the API of the page, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from aiohttp import web

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import DecodeError
from everynode.api.validation.names import dns_label, dns_subdomain
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.dashboard import actions, answers, story
from everynode.dashboard.access import Access, OwnRights, Viewer
from everynode.dashboard.answers import VIEWER, json_answer
from everynode.dashboard.cells import state_of
from everynode.dashboard.feed import Feed, Feeds, encode
from everynode.dashboard.guard import Guard, Refusal
from everynode.dashboard.model import FLAVOURS, Object, row_document
from everynode.dashboard.sets import BOTH_KINDS, SetList
from everynode.errors import UserError
from everynode.inspect.explain import Explanation
from everynode.inspect.live import LiveSnapshot
from everynode.inspect.pod_trouble import PodEvent, read_errors, read_events
from everynode.inspect.shared_caches import SharedCaches
from everynode.inspect.templates import diff_of_templates
from everynode.kube import verbs
from everynode.kube.client import Client

_FIRST_ANSWER: Final = 20.0  # seconds until a set must have been evaluated
_LIST_PAUSE: Final = 1.0  # seconds between two lists of sets, at least
_MAX_LIST_BYTES: Final = 50_000  # that one viewer is sent in a second: every list is sent whole
_MAX_DIGITS: Final = 18
_MAX_BODY_BYTES: Final = 1 << 16
MAX_CONNECTIONS: Final = 256  # so that those of the controller in the same process remain


class Key(NamedTuple):
    """Which set a path names."""

    flavour: Flavour
    namespace: str
    name: str


class Dashboard:
    """The handlers of the page's requests.

    `access` says who may see what; all is read with the rights of `client`, or was read before by
    the controller whose caches are `shared`. With a token, those who have it may also change sets.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        cluster: str,
        namespaces: tuple[str, ...] = (),
        flavours: tuple[Flavour, ...] = BOTH_KINDS,
        access: Access | None = None,
        token: str = "",
        shared: SharedCaches | None = None,
        share: float = 0.2,
    ) -> None:
        self.sets = SetList(clock)
        if shared is None:
            for namespace, flavour in product(namespaces or ("",), flavours):
                self.sets.watch(client.transport, namespace, flavour)
        else:
            for flavour in flavours:
                self.sets.share(*shared.sets(flavour))
        follow = shared.follow if shared else partial(LiveSnapshot, client.transport, clock)
        self.feeds = Feeds(follow, clock, share=share)
        self.access = access or OwnRights()
        self.actions = actions.Actions(client, clock, token) if token else None
        self._client = client
        self._clock = clock
        self._cluster = cluster
        self._namespaces = namespaces
        self._flavours = flavours

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that are served."""
        one = "/api/set/{kind}/{namespace}/{name}"
        return [
            web.get("/", answers.index),
            web.get("/page/{name}", answers.static),
            web.get("/api/sets", self._sets),
            web.get("/api/sets/stream", self._sets_stream),
            web.get(f"{one}/stream", self._stream),
            web.get(f"{one}/nodes", self._nodes),
            web.get(f"{one}/node/{{node}}", self._node),
            web.get(f"{one}/diff", self._diff),
            web.post(f"{one}/preview", self._act),
            web.post(f"{one}/apply", self._act),
        ]

    # --- The list of sets ---------------------------------------------------------------------

    async def _sets_document(self, viewer: Viewer) -> Object:
        return self.sets.document(await viewer.visible(self.sets.all()))

    def _with_head(self, document: Object) -> Object:
        head = {"cluster": self._cluster, "actions": self.actions is not None}
        return {**head, "now": int(self._clock.now()), **document}

    async def _sets(self, request: web.Request) -> web.StreamResponse:
        await self.sets.ready(_FIRST_ANSWER)
        return json_answer(self._with_head(await self._sets_document(request[VIEWER])))

    async def _sets_stream(self, request: web.Request) -> web.StreamResponse:
        viewer = request[VIEWER]
        await self.sets.ready(_FIRST_ANSWER)
        await self._sets_document(viewer)  # refused before the stream begins
        events = self._set_events(viewer)
        return await answers.send(request, events, self._clock, viewer.stream_seconds)

    async def _set_events(self, viewer: Viewer) -> AsyncIterator[bytes]:
        sent: Object = {}
        while True:
            changed = self.sets.changed()
            known = await self._sets_document(viewer)
            if known != sent:
                sent = known
                event = encode("sets", self._with_head(known))
                yield event
                await self._clock.sleep(max(_LIST_PAUSE, len(event) / _MAX_LIST_BYTES))
            else:
                await self.sets.change(changed)

    # --- One set ------------------------------------------------------------------------------

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        last, seconds = _last_event(request), request[VIEWER].stream_seconds
        async with self._view(request) as feed:
            return await answers.send(request, feed.events(last), self._clock, seconds)

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        async with self._view(request) as feed:
            await feed.ready(_FIRST_ANSWER)
            assert feed.evaluation is not None
            assert feed.model is not None
            state, reason = request.query.get("state"), request.query.get("reason")
            rows = list(zip(feed.evaluation.fleet.rows, feed.model.states, strict=False))
            if "at" in request.query:
                chosen = _places(request.query["at"])
                rows = [rows[place] for place in chosen if place < len(rows)]
            found = [
                row_document(row, state_of(byte))
                for row, byte in rows
                if state in (None, str(int(state_of(byte)))) and reason in (None, row.reason)
            ]
        return json_answer({"rows": found})

    async def _node(self, request: web.Request) -> web.StreamResponse:
        node, viewer = request.match_info["node"], request[VIEWER]
        async with self._view(request) as feed:
            await feed.ready(_FIRST_ANSWER)
            evaluation = feed.evaluation
            assert evaluation is not None
            found = story.explain(evaluation, node, self._clock.now())
            seen = feed.diary.of(node)
        errors, events, missing = await self._trouble(viewer, evaluation.fleet.ds, found)
        return json_answer(
            story.node_document(
                evaluation, found, seen=seen, errors=errors, events=events, missing=missing
            )
        )

    async def _trouble(
        self, viewer: Viewer, ds: DaemonSet, found: Explanation
    ) -> tuple[list[str], list[PodEvent], str]:
        """Return how containers ended, the events of a node's pod, and the right that is missing.

        Where the API server refuses a pod, the event is about the DaemonSet.
        """
        pod = next((each for each in found.pods if each.name == found.row.pod), None)
        errors = [] if pod is None else await read_errors(self._client, ds.namespace, pod.name)
        missing = await viewer.missing_for_events(ds.namespace)
        if missing:
            return errors, [], missing
        about = ds.uid if pod is None else pod.uid
        events = await read_events(self._client, ds.namespace, about, warnings_only=pod is None)
        return (errors, [], events) if isinstance(events, str) else (errors, events, "")

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
        return json_answer({"text": "\n".join(diff_of_templates(before, after))})

    async def _act(self, request: web.Request) -> web.StreamResponse:
        """Show a change, or write one that was confirmed."""
        if self.actions is None:
            raise Refusal(405, "this dashboard only shows", "use the commands that it names")
        self.actions.check(request.headers)
        if request.content_type != "application/json":
            raise Refusal(415, "an action is sent as JSON", "use the dashboard's own page")
        key = self._key(request)
        requested = actions.parse(await request.read())
        if request.path.endswith("/apply"):
            return json_answer(await self.actions.apply(*key, requested))
        return json_answer(await self.actions.preview(*key, requested))

    # --- Which set ----------------------------------------------------------------------------

    @asynccontextmanager
    async def _view(self, request: web.Request) -> AsyncIterator[Feed]:
        key = self._key(request)
        await request[VIEWER].check(*key)
        ds = await self._read(key)
        async with self.feeds.view(key, ds) as feed:
            yield feed

    def _key(self, request: web.Request) -> Key:
        """Return kind, namespace and name of a path; nothing else gets into a request."""
        kind, namespace, name = (request.match_info[part] for part in ("kind", "namespace", "name"))
        if kind not in FLAVOURS or any(dns_label(namespace)) or any(dns_subdomain(name)):
            raise Refusal(400, "no set can have this name", "go back to the list of sets")
        if self._namespaces and namespace not in self._namespaces:
            raise Refusal(403, f"this dashboard does not show {namespace}", "start it with -n")
        if FLAVOURS[kind] not in self._flavours:
            raise Refusal(
                403, f"this dashboard does not show {kind}", "go back to the list of sets"
            )
        return Key(FLAVOURS[kind], namespace, name)

    async def _read(self, key: Key) -> DaemonSet:
        """Return the set; the API server decides whether it may be seen."""
        request = verbs.get(resource_of(key.flavour), key.name, namespace=key.namespace)
        raw = await self._client.read(request, bytes, attempts=2)
        try:
            return decode_daemonset(raw, flavour=key.flavour)
        except DecodeError as error:
            raise Refusal(503, f"the set cannot be read: {error}", "look at its spec") from None


def _places(text: str) -> list[int]:
    """Return the places of rows that a request names; raises Refusal."""
    parts = text.split(",")
    if not all(each.isascii() and each.isdecimal() and len(each) <= _MAX_DIGITS for each in parts):
        raise Refusal(400, "rows are named by their places, such as at=0,1", "leave out at=")
    return [int(each) for each in parts]


def _last_event(request: web.Request) -> int | None:
    text = request.headers.get("Last-Event-ID", "")
    known = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if known else None


class _TooMany(asyncio.Protocol):
    """A connection too many, which is closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _bounded(runner: web.AppRunner) -> Callable[[], asyncio.BaseProtocol]:
    """Return what takes new connections, as long as there are not too many."""
    server = runner.server
    assert server is not None
    return lambda: server() if len(server.connections) < MAX_CONNECTIONS else _TooMany()


@asynccontextmanager
async def serve(
    dashboard: Dashboard,
    port: int,
    *,
    host: str = "127.0.0.1",
    forwarded: bool = False,
    option: str = "--port",
) -> AsyncIterator[int]:
    """Serve the page on loopback inside a `with` block; yields the port. Raises UserError.

    `option` is the one with which the user chose the port. `forwarded` says that browsers come by
    a port of another machine.
    """
    listening: int | None = None
    acts = dashboard.actions is not None
    check = answers.checked(lambda: Guard(listening, acts), dashboard.access)
    app = web.Application(middlewares=[check], client_max_size=_MAX_BODY_BYTES)
    app.add_routes(dashboard.routes())
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    watching = asyncio.create_task(dashboard.sets.run())
    listener: asyncio.Server | None = None
    try:
        try:
            listener = await asyncio.get_running_loop().create_server(_bounded(runner), host, port)
        except OSError as error:
            raise UserError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another {option}"
            ) from None
        used = int(listener.sockets[0].getsockname()[1])
        listening = None if forwarded else used
        yield used
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()
        await dashboard.feeds.close()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
