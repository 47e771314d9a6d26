"""Client: sends requests to one API server; retries reads, bounds writes, raises API errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

import msgspec

from everynode.api.decode import NAMELESS, DecodeError, read_key_and_uid
from everynode.api.json_parts import elements, members
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.errors import (
    KubeError,
    RequestInfo,
    TooManyRequests,
    Unavailable,
    UnknownOutcome,
    describe,
    from_response,
    from_transport,
)
from everynode.kube.requests import Request, Response
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport, TransportError
from everynode.kube.verbs import EVERYTHING, ListOptions

T = TypeVar("T")

# How long the server may work on a write, unless `write_budget` gives less.
WRITE_SECONDS: Final = 10.0
READ_ATTEMPTS: Final = 4
_BACKOFF: Final = Backoff(first=0.25, longest=5.0)  # between the attempts of a read


class NotLeader(KubeError):
    """We are not the leader, or cannot be sure to be: the write was not sent."""


def _write_seconds() -> float:
    return WRITE_SECONDS


class _Page(msgspec.Struct):
    class Meta(msgspec.Struct, rename={"token": "continue", "version": "resourceVersion"}):
        token: str = ""
        version: str = ""

    metadata: Meta = msgspec.field(default_factory=Meta)
    items: list[msgspec.Raw] | None = None


# Exceptions of decoders: msgspec's are ValueErrors; JSON nested too deep raises RecursionError.
UNREADABLE: Final = (ValueError, RecursionError)
_page_decoder: Final = msgspec.json.Decoder(_Page)


class Page(msgspec.Struct, frozen=True):
    """One page of a list: raw objects, the list's version, and the token of the next page."""

    items: list[msgspec.Raw]
    version: str
    token: str


def _decode_response(
    decode: Callable[[bytes], T], response: Response, request: Request, error: type[KubeError]
) -> T:
    """Decode a response; raises `error` where it is not JSON of the kind, as proxies may send."""
    try:
        return decode(response.body)
    except UNREADABLE as why:
        request_info = describe(request)
        raise error(f"the response cannot be decoded: {why}", request_info=request_info) from why


def describe_unreadable(resource: Resource, body: bytes, error: Exception) -> str:
    """Return which object cannot be decoded, and why."""
    if isinstance(error, DecodeError):
        return str(error)
    return f"{resource.kind} {read_key_and_uid(body)[0] or NAMELESS}: {error}"


def decode_page(body: bytes) -> Page:
    """Split a page of a list into its items, which are views into the page's bytes.

    API servers store objects that no decoder accepts: with half of a surrogate pair in the data of
    a revision, or nested deeper than Python's limit. One of them must not hide the others.
    """
    try:
        page = _page_decoder.decode(body)
    except UNREADABLE:
        page = _split_page(body)
    return Page(page.items or [], page.metadata.version, page.metadata.token)


def _split_page(body: bytes) -> _Page:
    """Split a page by its brackets, whether its items can be decoded or not."""
    parts = members(body)
    if b"items" not in parts:
        raise ValueError("a list has no items")
    metadata = msgspec.json.decode(parts.get(b"metadata", b"{}"), type=_Page.Meta)
    items = [] if parts[b"items"] == b"null" else elements(parts[b"items"])
    return _Page(metadata, [msgspec.Raw(item) for item in items])


class Client:
    """Sends requests to one API server.

    Reads are retried a few times, writes never. At most `writes_at_once` writes are in flight.
    `write_budget` is called just before a write is sent and returns how many seconds the server may
    take for it; at zero or less it is not sent. `meter` is called for every write that was sent,
    with the request and `ok` or the name of the error. `left_out` is called for every object of a
    list that cannot be decoded.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        writes_at_once: int = 32,
        write_budget: Callable[[], float] = _write_seconds,
        meter: Callable[[RequestInfo, str], None] | None = None,
        left_out: Callable[[Resource, str], None] | None = None,
    ) -> None:
        self.transport = transport
        self._clock = clock
        self._write_budget = write_budget
        self._meter = meter
        self._left_out = left_out
        self._slots = asyncio.Semaphore(writes_at_once)
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._uncertain_until = float("-inf")

    async def read(
        self, request: Request, decode: Callable[[bytes], T], *, attempts: int = READ_ATTEMPTS
    ) -> T:
        """Send a GET; retries while the server cannot serve it."""
        for attempt in range(attempts):
            try:
                response = await self._send(request)
                return _decode_response(decode, response, request, Unavailable)
            except (Unavailable, TooManyRequests) as error:
                if attempt == attempts - 1:
                    raise
                await self._clock.sleep(self._pause(attempt + 1, error.retry_after))
        raise AssertionError("unreachable")

    async def read_all(
        self,
        resource: Resource,
        decode: Callable[[bytes], T],
        *,
        options: ListOptions = EVERYTHING,
    ) -> list[T]:
        """Read a whole collection, page by page, in its most recent state.

        An object that cannot be decoded is left out and reported, so that it does not hide the
        others.
        """
        found: list[T] = []
        async for page in self.pages(resource, options=options):
            for item in page.items:
                body = bytes(item)
                try:
                    found.append(decode(body))
                except UNREADABLE as error:
                    if self._left_out is not None:
                        self._left_out(resource, describe_unreadable(resource, body, error))
        return found

    async def pages(
        self, resource: Resource, *, options: ListOptions = EVERYTHING
    ) -> AsyncIterator[Page]:
        """Read a collection page by page; raises Gone when a page token has expired."""
        token = ""
        while True:
            request = verbs.list_page(resource, options=options, token=token)
            page = await self.read(request, decode_page)
            yield page
            token = page.token
            if not token:
                return

    async def write(self, request: Request, decode: Callable[[bytes], T]) -> T:
        """Send a write once.

        Raises UnknownOutcome when it may have happened, NotLeader when it was not sent.
        """
        async with self._slots:
            seconds = self._write_budget()
            if seconds <= 0:
                raise NotLeader("not the leader", request_info=describe(request))
            response = await self._send_write(verbs.with_timeout(request, seconds))
            return _decode_response(decode, response, request, UnknownOutcome)

    async def settle(self) -> None:
        """Wait until no write can take effect any more: each has its response, or is too late."""
        await self._idle.wait()
        await self._clock.sleep(self._uncertain_until - self._clock.monotonic())

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def _send_write(self, request: Request) -> Response:
        expires = self._clock.monotonic() + request.timeout
        self._in_flight += 1
        self._idle.clear()
        result = "ok"
        try:
            return await self._send(request)
        except (KubeError, asyncio.CancelledError) as error:
            result = type(error).__name__
            if isinstance(error, UnknownOutcome | asyncio.CancelledError):
                self._uncertain_until = max(self._uncertain_until, expires)
            raise
        finally:
            if self._meter is not None:
                self._meter(describe(request), result)
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _send(self, request: Request) -> Response:
        try:
            response = await self.transport.send(request)
        except TransportError as error:
            raise from_transport(request, error) from error
        if not response.ok:
            raise from_response(request, response)
        return response

    def _pause(self, failures: int, retry_after: float | None) -> float:
        """Return the seconds until the next attempt, after that many failures in a row."""
        longest = _BACKOFF.delay(failures)
        pause = self._clock.jitter(longest / 2, longest)
        return max(pause, min(retry_after or 0.0, _BACKOFF.longest))
