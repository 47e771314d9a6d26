"""Keeping a copy of one collection up to date: the requests and streams of a list+watch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.alarm import Alarm
from everynode.kube.cache import Object
from everynode.kube.client import UNREADABLE, decode_page
from everynode.kube.errors import Gone, KubeError, NotServed, from_response, from_status
from everynode.kube.requests import Request, Response
from everynode.kube.resources import Resource
from everynode.kube.states import (
    PATIENCE,
    SHORTEST_WATCH,
    Broken,
    Complete,
    Ended,
    Outcome,
    PageRead,
    Position,
    Refused,
    Silent,
    State,
    advance,
)
from everynode.kube.transport import Direct, Event, Stream, Transport, TransportError
from everynode.kube.verbs import EVERYTHING, Scope

# The server sends a bookmark about once a minute; half as long again means a dead connection.
IDLE_LIMIT: Final = 90.0
# Between the initial events of a watch-list nothing has to be waited for.
INITIAL_IDLE_LIMIT: Final = 30.0
# Watches are renewed every 5 to 10 minutes, so that no server keeps us for ever.
SHORTEST_LIFE: Final = 300
LONGEST_LIFE: Final = 600
_OVERTIME: Final = 30.0  # given to a server that does not end a watch when asked
_BREATH: Final = 64  # events handled before others get a turn

_END_OF_INITIAL_EVENTS: Final = b'"k8s.io/initial-events-end"'

T = TypeVar("T", bound=Object)
T_contra = TypeVar("T_contra", contravariant=True)


class Consumer(Protocol[T_contra]):
    """Whoever keeps the copy."""

    def replace(self, objects: Iterable[T_contra], version: str) -> None:
        """These are all the objects there are; whatever else is known has vanished."""
        ...

    def upsert(self, item: T_contra) -> None:
        """This object is new or has changed."""
        ...

    def delete(self, item: T_contra) -> None:
        """This object, as it was last, is gone."""
        ...

    def bookmark(self, version: str) -> None:
        """Everything up to this version has been told."""
        ...


class Observer(Protocol):
    """Whoever wants to know how the watch itself is doing."""

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Something new is wrong; an empty message says that all is well again.

        `missing` says that the server does not know the kind.
        """
        ...

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A request had to be made again: `broken`, `gone`, `silent`, `refused` and the like."""
        ...

    def object_left_out(self, resource: Resource, message: str) -> None:
        """An object cannot be read, and what is known of it stays as it is."""
        ...


class Nobody:
    """An observer that does not care."""

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Ignore it."""

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """Ignore it."""

    def object_left_out(self, resource: Resource, message: str) -> None:
        """Ignore it."""


class _Meta(msgspec.Struct, rename={"version": "resourceVersion"}):
    version: str = ""


class _Bare(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw()


_event_decoder: Final = msgspec.json.Decoder(_Event)
_bare_decoder: Final = msgspec.json.Decoder(_Bare)


def split_event(line: bytes) -> Event:
    """Return the type of a watch event and the JSON of its object.

    Servers write the type first and the object last; relying on that saves going through the
    object twice. Anything else is decoded properly.
    """
    object_at = line.find(b'","object":{', 9, 40)
    if object_at > 0 and line.startswith(b'{"type":"') and line.endswith(b"}}"):
        return line[9:object_at].decode("ascii"), line[object_at + 11 : -1]
    event = _event_decoder.decode(line)
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
        scope: Scope = EVERYTHING,
        keep: Callable[[T], bool] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.resource = resource
        self.trouble = ""
        self.missing = False  # the server does not know the kind
        self.heard_at = clock.monotonic()  # when the server last said anything useful
        self.tried_at = clock.monotonic()  # when we last asked or heard anything
        self._transport = transport
        self._clock = clock
        self._decode = decode
        self._consumer = consumer
        self._scope = scope
        self._keep = keep  # of a whole list, only these are held until it is handed over
        self._observer: Observer = observer or Nobody()
        self._position = Position()
        self._gathered: list[T] = []
        self._version = ""  # the last one heard on the present stream
        self._heard = False  # whether anything came on it
        self.synced = False  # whether the consumer has a whole copy, even if it may be old
        self._settled = asyncio.Event()
        self._refreshing = False  # everything is to be listed again
        self._interruption = Alarm()

    async def settled(self) -> None:
        """Wait until the copy is whole, or the kind is known not to be served."""
        await self._settled.wait()

    async def refresh(self) -> None:
        """List everything again, in its most recent state, and wait until the copy shows it.

        Returns, too, when it turns out that the kind is not served.
        """
        self._settled.clear()
        self._refreshing = True
        self._interruption.ring()
        await self._settled.wait()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            if self._refreshing:
                self._refreshing = False
                self._position = self._position.restarted()
            outcome = None
            with self._interruption:
                outcome = await self._ask()
            if outcome is None:
                continue
            step = advance(self._position, outcome)
            self._position = step.position
            self._note(outcome, step.trouble, step.reason)
            if step.pause:
                pause = max(self._clock.jitter(step.pause / 2, step.pause), step.at_least)
                with self._interruption:
                    await self._clock.sleep(pause)

    def _ask(self) -> Coroutine[Any, Any, Outcome]:
        self.tried_at = self._clock.monotonic()
        position = self._position
        if position.state is State.LIST:
            page = verbs.list_page(self.resource, scope=self._scope, token=position.token)
            return self._read_page(page)
        life = int(self._clock.jitter(SHORTEST_LIFE, LONGEST_LIFE))
        if position.state is State.WATCH_LIST:
            self._gathered = []
            request = verbs.watch_list(self.resource, seconds=life, scope=self._scope)
        else:
            request = verbs.watch(
                self.resource, version=position.version, seconds=life, scope=self._scope
            )
        return self._follow(request, life)

    # --- Lists -----------------------------------------------------------------------------

    async def _read_page(self, request: Request) -> Outcome:
        if not self._position.token:
            self._gathered = []
        try:
            response = await self._transport.send(request)
        except TransportError as error:
            return Broken("", f"cannot reach the server: {error}")
        if not response.ok:
            return Refused("", from_response(request, response))
        try:
            page = decode_page(response.body)
        except UNREADABLE as error:
            return Broken("", f"the list makes no sense: {error}")
        # Each object is decoded by itself, so that it does not keep the whole page in memory.
        for item in page.items:
            self._gather(bytes(item))
        if not page.token:
            self._hand_over(page.version)
        return PageRead(page.version, page.token)

    def _gather(self, body: bytes) -> None:
        try:
            item = self._decode(body)
        except UNREADABLE as error:
            self._leave_out(error)
            return
        if self._keep is None or self._keep(item):
            self._gathered.append(item)

    def _hand_over(self, version: str) -> None:
        gathered, self._gathered = self._gathered, []
        self._consumer.replace(gathered, version)
        self.synced = True
        self.heard_at = self._clock.monotonic()
        self.missing = False
        # A refresh asked for meanwhile wants a list that began after it was asked.
        if not self._refreshing:
            self._settled.set()

    # --- Streams ---------------------------------------------------------------------------

    async def _follow(self, request: Request, life: float) -> Outcome:
        self._version, self._heard = self._position.version, False
        try:
            stream = await self._transport.open(request)
        except TransportError as error:
            return Broken(self._version, f"cannot reach the server: {error}")
        try:
            if stream.status != 200:
                response = Response(stream.status, await stream.read(), stream.headers)
                return Refused(self._version, from_response(request, response))
            outcome, silence = None, Alarm()
            with self._guarded(life, silence), silence:
                outcome = await self._read(stream, request)
            return Silent(self._version) if outcome is None else outcome
        except TransportError as error:
            return Broken(self._version, str(error), self._heard)
        finally:
            await stream.close()

    async def _read(self, stream: Stream, request: Request) -> Outcome:
        read: Callable[[], Awaitable[bytes | Event | None]]
        read = stream.event if isinstance(stream, Direct) else stream.readline
        began = self._clock.monotonic()
        count = 0
        while True:
            try:
                found = await read()
                if not found:
                    return Ended(self._version, self._clock.monotonic() - began, self._heard)
                kind, body = split_event(found) if isinstance(found, bytes) else found
                failure = self._handle(kind, body, request)
            except TransportError as error:
                return Broken(self._version, str(error), self._heard)
            except (msgspec.DecodeError, RecursionError) as error:
                return Broken(self._version, f"half an event came: {error}", self._heard)
            if failure is not None:
                return Refused(self._version, failure, self._heard)
            self.heard_at = self.tried_at = self._clock.monotonic()
            if not self._heard:
                self._heard = True
                self._tell_trouble("")
            count += 1
            if count % _BREATH == 0:
                await self._clock.sleep(0)

    def _handle(self, kind: str, body: bytes, request: Request) -> KubeError | None:
        if kind == "ERROR":
            return from_status(request, body)
        if kind == "BOOKMARK":
            self._bookmark(body)
            return None
        if self._position.state is State.WATCH_LIST:
            self._gather(body)
            return None
        try:
            item = self._decode(body)
        except UNREADABLE as error:
            self._leave_out(error)
            # Which one is gone cannot be read: only a list tells what is left.
            return Gone("an object that cannot be read was deleted") if kind == "DELETED" else None
        self._version = item.metadata.resource_version
        if kind == "DELETED":
            self._consumer.delete(item)
        else:
            self._consumer.upsert(item)
        return None

    def _bookmark(self, body: bytes) -> None:
        self._version = _bare_decoder.decode(body).metadata.version
        if self._position.state is State.WATCH:
            self._consumer.bookmark(self._version)
        elif _END_OF_INITIAL_EVENTS in body:
            complete = Complete(self._version)
            self._hand_over(self._version)
            self._position = advance(self._position, complete).position
            self._note(complete, "", "")

    @contextmanager
    def _guarded(self, life: float, silence: Alarm) -> Iterator[None]:
        self.tried_at = self._clock.monotonic()
        guard = asyncio.create_task(self._until_silent(life, silence))
        try:
            yield
        finally:
            if not guard.cancel() and not guard.cancelled():
                guard.result()  # what it failed of, if it did

    async def _until_silent(self, life: float, silence: Alarm) -> None:
        end = self._clock.monotonic() + life + _OVERTIME
        if self._position.state is State.WATCH:
            await self._clock.sleep(SHORTEST_WATCH)
            self.heard_at = self._clock.monotonic()  # quiet, but the server took our version
            self._tell_trouble("")
        while True:
            watching = self._position.state is State.WATCH
            limit = IDLE_LIMIT if watching else INITIAL_IDLE_LIMIT
            remaining = min(self.tried_at + limit, end) - self._clock.monotonic()
            if remaining <= 0:
                silence.ring()
                return
            await self._clock.sleep(remaining)

    # --- Both ------------------------------------------------------------------------------

    def _leave_out(self, error: Exception) -> None:
        """One object that we cannot read must not keep us from all the others."""
        self._observer.object_left_out(self.resource, str(error))

    def _note(self, outcome: Outcome, trouble: str, reason: str) -> None:
        if reason:
            self._observer.watch_restarted(self.resource, reason)
        if isinstance(outcome, Refused) and isinstance(outcome.error, NotServed):
            self._note_missing()
        self._tell_trouble(trouble)

    def _note_missing(self) -> None:
        if self.synced:
            # A server that has just started may not know yet what it serves; but what stays
            # unknown is gone with all its objects, and nobody shall act upon them.
            if self._position.failures < PATIENCE:
                return
            self.synced = False
            self._consumer.replace([], "")
        self.missing = True
        self._settled.set()

    def _tell_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._observer.watch_trouble(self.resource, trouble, missing=self.missing)
