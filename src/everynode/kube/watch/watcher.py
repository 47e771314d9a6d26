"""Watcher: sends the requests of a list+watch and passes objects and changes to a consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from everynode.api.decode import read_key_and_uid
from everynode.api.json_parts import members
from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.client import UNREADABLE, decode_page, describe_unreadable
from everynode.kube.errors import Gone, KubeError, NotServed, from_response, from_status
from everynode.kube.requests import METADATA, METADATA_LIST, Request, Response
from everynode.kube.resources import Resource
from everynode.kube.transport import Event, InProcessStream, Stream, Transport, TransportError
from everynode.kube.verbs import EVERYTHING, ListOptions
from everynode.kube.watch.cache import NONE_UNREADABLE, Object
from everynode.kube.watch.interrupt import Interrupt, TimeLimit
from everynode.kube.watch.states import (
    MAX_REFUSALS,
    SHORTEST_WATCH,
    Broken,
    Ended,
    ListComplete,
    Outcome,
    PageRead,
    Position,
    Refused,
    Silent,
    WatchState,
    advance,
)

# The server sends a bookmark about once a minute; half as long again means a dead connection.
IDLE_LIMIT: Final = 90.0
# The initial events of a watch-list follow each other without a reason to wait.
INITIAL_IDLE_LIMIT: Final = 30.0
# Time limit for the body of a refusal: it has a few hundred bytes, and the status is known already.
REFUSAL_SECONDS: Final = 10.0
# Watches are renewed every 5 to 10 minutes, so that none stays on one API server.
MIN_WATCH_SECONDS: Final = 300
MAX_WATCH_SECONDS: Final = 600
_EXTRA_SECONDS: Final = 30.0  # after a watch's timeoutSeconds, for a server that does not end it
_EVENTS_PER_TURN: Final = 64  # events handled before others get a turn

_END_OF_INITIAL_EVENTS: Final = b'"k8s.io/initial-events-end"'

T = TypeVar("T", bound=Object)
T_contra = TypeVar("T_contra", contravariant=True)


class Consumer(Protocol[T_contra]):
    """Receives the objects and changes: a cache."""

    def replace(
        self, objects: Iterable[T_contra], version: str, unread: Mapping[str, str] = NONE_UNREADABLE
    ) -> None:
        """Replace everything by this list of all objects.

        Objects that exist but cannot be decoded are given as uids by key: their known state stays.
        A pod that we cannot decode still runs: counted as deleted, it would be created a second
        time. A node that we cannot decode still exists: counted as deleted, it would lose its pod.
        """
        ...

    def upsert(self, item: T_contra) -> None:
        """Store an object that is new or has changed."""
        ...

    def delete(self, item: T_contra) -> None:
        """Remove an object; it is given in its last state."""
        ...

    def bookmark(self, version: str) -> None:
        """Note that all changes up to this version have been received."""
        ...


class WatchObserver(Protocol):
    """Is notified of problems of the watch itself."""

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """The problem has changed; an empty message means that there is none any more.

        `missing` is True where the server does not know the kind.
        """
        ...

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A request had to be repeated; the reason is one word: `broken`, `gone`, `silent` ..."""
        ...

    def object_left_out(self, resource: Resource, message: str) -> None:
        """An object cannot be decoded; its known state stays."""
        ...


class NullObserver:
    """An observer that ignores everything."""

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Ignore it."""

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """Ignore it."""

    def object_left_out(self, resource: Resource, message: str) -> None:
        """Ignore it."""


class _Meta(msgspec.Struct, rename={"version": "resourceVersion"}):
    version: str = ""


class _BareObject(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw()


_event_decoder: Final = msgspec.json.Decoder(_Event)
_bare_object_decoder: Final = msgspec.json.Decoder(_BareObject)


def split_event(line: bytes) -> Event:
    """Return the type of a watch event and the JSON of its object.

    Servers write the type first and the object last; relying on that spares scanning the object
    twice. Any other line is decoded as JSON.
    """
    object_at = line.find(b'","object":{', 9, 40)
    if object_at > 0 and line.startswith(b'{"type":"') and line.endswith(b"}}"):
        return line[9:object_at].decode("ascii"), line[object_at + 11 : -1]
    try:
        event = _event_decoder.decode(line)
    except UNREADABLE:
        # Perhaps only the object cannot be decoded; half an event raises here once more.
        parts = members(line)
        return msgspec.json.decode(parts.get(b"type", b""), type=str), parts.get(b"object", b"")
    return event.type, bytes(event.object)


class Watcher(Generic[T]):
    """Keeps one consumer's copy of one collection up to date, for as long as it runs."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        resource: Resource,
        decode: Callable[[bytes], T],
        consumer: Consumer[T],
        options: ListOptions = EVERYTHING,
        keep: Callable[[T], bool] | None = None,
        observer: WatchObserver | None = None,
        metadata_only: bool = False,
    ) -> None:
        self.resource = resource
        self.trouble = ""
        self.missing = False  # the server does not know the kind
        self.received_at = clock.monotonic()  # when the server last sent anything useful
        self.tried_at = clock.monotonic()  # when we last sent or received anything
        self._transport = transport
        self._clock = clock
        self._decode = decode
        self._consumer = consumer
        self._options = options
        self._metadata_only = metadata_only  # the server leaves out spec and status
        self._keep = keep  # only these objects of a list are held until it is delivered
        self._observer: WatchObserver = observer or NullObserver()
        self._position = Position()
        self._listed: list[T] = []
        self._unreadable: dict[str, str] = {}  # objects of the list that cannot be decoded
        self._version = ""  # the last one received on the current stream
        self._received = False  # whether anything was received on it
        self.synced = False  # whether the consumer has a whole copy, even if it may be old
        self._settled = asyncio.Event()
        self._refreshing = False  # whether to list everything again
        self._interrupt = Interrupt()

    async def settled(self) -> None:
        """Wait until the copy is whole, or the kind is known not to be served."""
        await self._settled.wait()

    async def refresh(self) -> None:
        """List everything again, in its most recent state, and wait until the copy shows it.

        Returns, too, when it turns out that the kind is not served.
        """
        self._settled.clear()
        self._refreshing = True
        self._interrupt.trigger()
        await self._settled.wait()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            if self._refreshing:
                self._refreshing = False
                self._position = self._position.restarted()
            outcome = None
            with self._interrupt:
                outcome = await self._next_request()
            if outcome is None:
                continue
            step = advance(self._position, outcome)
            self._position = step.position
            self._report(outcome, step.trouble, step.reason)
            if step.pause:
                pause = max(self._clock.jitter(step.pause / 2, step.pause), step.at_least)
                with self._interrupt:
                    await self._clock.sleep(pause)

    def _next_request(self) -> Coroutine[Any, Any, Outcome]:
        self.tried_at = self._clock.monotonic()
        position = self._position
        if position.state is WatchState.LIST:
            page = verbs.list_page(self.resource, options=self._options, token=position.token)
            return self._read_page(self._as_asked(page, METADATA_LIST))
        lifetime = int(self._clock.jitter(MIN_WATCH_SECONDS, MAX_WATCH_SECONDS))
        if position.state is WatchState.WATCH_LIST:
            self._start_list()
            request = verbs.watch_list(self.resource, seconds=lifetime, options=self._options)
        else:
            request = verbs.watch(
                self.resource, version=position.version, seconds=lifetime, options=self._options
            )
        return self._run_watch(self._as_asked(request, METADATA), lifetime)

    def _as_asked(self, request: Request, metadata: str) -> Request:
        return msgspec.structs.replace(request, accept=metadata) if self._metadata_only else request

    # --- Lists -----------------------------------------------------------------------------

    async def _read_page(self, request: Request) -> Outcome:
        if not self._position.token:
            self._start_list()
        try:
            response = await self._transport.send(request)
        except TransportError as error:
            return Broken("", f"cannot reach the server: {error}")
        if not response.ok:
            return Refused("", from_response(request, response))
        try:
            page = decode_page(response.body)
        except UNREADABLE as error:
            return Broken("", f"the list cannot be decoded: {error}")
        # Each object is copied and decoded alone, so that it does not keep the page in memory.
        for item in page.items:
            self._add_to_list(bytes(item))
        if not page.token:
            self._deliver_list(page.version)
        return PageRead(page.version, page.token)

    def _start_list(self) -> None:
        self._listed, self._unreadable = [], {}

    def _add_to_list(self, body: bytes) -> None:
        try:
            item = self._decode(body)
        except UNREADABLE as error:
            self._leave_out(body, error)
            key, uid = read_key_and_uid(body)
            if key:
                self._unreadable[key] = uid
            return
        if self._keep is None or self._keep(item):
            self._listed.append(item)

    def _deliver_list(self, version: str) -> None:
        listed, unread = self._listed, self._unreadable
        self._start_list()
        self._consumer.replace(listed, version, unread)
        self.synced = True
        self.received_at = self._clock.monotonic()
        self.missing = False
        # A refresh that was requested meanwhile needs a list that began after it.
        if not self._refreshing:
            self._settled.set()

    # --- Streams ---------------------------------------------------------------------------

    async def _run_watch(self, request: Request, lifetime: float) -> Outcome:
        self._version, self._received = self._position.version, False
        try:
            stream = await self._transport.open(request)
        except TransportError as error:
            return Broken(self._version, f"cannot reach the server: {error}")
        try:
            if stream.status != 200:
                response = Response(stream.status, await self._read_refusal(stream), stream.headers)
                return Refused(self._version, from_response(request, response))
            outcome, silence = None, Interrupt()
            with self._silence_guard(lifetime, silence), silence:
                outcome = await self._read_events(stream, request)
            return Silent(self._version) if outcome is None else outcome
        except TransportError as error:
            return Broken(self._version, str(error), self._received)
        finally:
            await stream.close()

    async def _read_refusal(self, stream: Stream) -> bytes:
        """Return the body of a refusal; empty where it does not arrive in time."""
        with TimeLimit(self._clock, REFUSAL_SECONDS):
            return await stream.read()
        return b""

    async def _read_events(self, stream: Stream, request: Request) -> Outcome:
        read: Callable[[], Awaitable[bytes | Event | None]]
        read = stream.event if isinstance(stream, InProcessStream) else stream.readline
        began = self._clock.monotonic()
        count = 0
        while True:
            try:
                found = await read()
                if not found:
                    return Ended(self._version, self._clock.monotonic() - began, self._received)
                kind, body = split_event(found) if isinstance(found, bytes) else found
                failure = self._handle_event(kind, body, request)
            except TransportError as error:
                return Broken(self._version, str(error), self._received)
            except UNREADABLE as error:
                return Broken(self._version, f"an event is incomplete: {error}", self._received)
            if failure is not None:
                return Refused(self._version, failure, self._received)
            self.received_at = self.tried_at = self._clock.monotonic()
            if not self._received:
                self._received = True
                self._report_trouble("")
            count += 1
            if count % _EVENTS_PER_TURN == 0:
                await self._clock.sleep(0)

    def _handle_event(self, kind: str, body: bytes, request: Request) -> KubeError | None:
        if kind == "ERROR":
            return from_status(request, body)
        if kind == "BOOKMARK":
            self._handle_bookmark(body)
            return None
        if self._position.state is WatchState.WATCH_LIST:
            self._add_to_list(body)
            return None
        try:
            item = self._decode(body)
        except UNREADABLE as error:
            # Its known state stays: see Consumer.replace.
            self._leave_out(body, error)
            # The deleted object is unknown: only a new list shows which objects are left.
            return Gone("an object that cannot be read was deleted") if kind == "DELETED" else None
        self._version = item.metadata.resource_version
        if kind == "DELETED":
            self._consumer.delete(item)
        else:
            self._consumer.upsert(item)
        return None

    def _handle_bookmark(self, body: bytes) -> None:
        self._version = _bare_object_decoder.decode(body).metadata.version
        if self._position.state is WatchState.WATCH:
            self._consumer.bookmark(self._version)
        elif _END_OF_INITIAL_EVENTS in body:
            complete = ListComplete(self._version)
            self._deliver_list(self._version)
            self._position = advance(self._position, complete).position
            self._report(complete, "", "")

    @contextmanager
    def _silence_guard(self, lifetime: float, silence: Interrupt) -> Iterator[None]:
        self.tried_at = self._clock.monotonic()
        guard = asyncio.create_task(self._detect_silence(lifetime, silence))
        try:
            yield
        finally:
            if not guard.cancel() and not guard.cancelled():
                guard.result()  # raises the exception that ended it, if any

    async def _detect_silence(self, lifetime: float, silence: Interrupt) -> None:
        end = self._clock.monotonic() + lifetime + _EXTRA_SECONDS
        if self._position.state is WatchState.WATCH:
            await self._clock.sleep(SHORTEST_WATCH)
            self.received_at = self._clock.monotonic()  # no event yet, but the version is accepted
            self._report_trouble("")
        while True:
            watching = self._position.state is WatchState.WATCH
            limit = IDLE_LIMIT if watching else INITIAL_IDLE_LIMIT
            remaining = min(self.tried_at + limit, end) - self._clock.monotonic()
            if remaining <= 0:
                silence.trigger()
                return
            await self._clock.sleep(remaining)

    # --- Lists and streams -----------------------------------------------------------------

    def _leave_out(self, body: bytes, error: Exception) -> None:
        """Report an object that cannot be decoded; it must not hide the others."""
        self._observer.object_left_out(
            self.resource, describe_unreadable(self.resource, body, error)
        )

    def _report(self, outcome: Outcome, trouble: str, reason: str) -> None:
        if reason:
            self._observer.watch_restarted(self.resource, reason)
        if isinstance(outcome, Refused) and isinstance(outcome.error, NotServed):
            self._handle_not_served()
        self._report_trouble(trouble)

    def _handle_not_served(self) -> None:
        if self.synced:
            # A server that has just started may not serve all kinds yet. A kind that stays unknown
            # is gone with all its objects, and no decision may use them any more.
            if self._position.failures < MAX_REFUSALS:
                return
            self.synced = False
            self._consumer.replace([], "")
        self.missing = True
        self._settled.set()

    def _report_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._observer.watch_trouble(self.resource, trouble, missing=self.missing)
