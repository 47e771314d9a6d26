"""Sending requests and understanding the answers, with bounds on everything."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

import msgspec

from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.errors import (
    Asked,
    KubeError,
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
from everynode.kube.verbs import EVERYTHING, Scope

T = TypeVar("T")

WRITE_SECONDS: Final = 10.0  # how long the server may work on a write when nobody says less
READ_ATTEMPTS: Final = 4
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 5.0


class MayNotWrite(KubeError):
    """We are not, or no longer surely, the leader: the write was not sent."""


def _always() -> float:
    return WRITE_SECONDS


class _Page(msgspec.Struct):
    class Meta(msgspec.Struct, rename={"token": "continue", "version": "resourceVersion"}):
        token: str = ""
        version: str = ""

    metadata: Meta = msgspec.field(default_factory=Meta)
    items: list[msgspec.Raw] | None = None


# What decoders raise: msgspec's errors are ValueErrors, but for JSON too deep to be true.
UNREADABLE: Final = (ValueError, RecursionError)
_DEEPEST: Final = 11_000  # an API server refuses JSON of more than 10,000 levels
_page_decoder: Final = msgspec.json.Decoder(_Page)


class Page(msgspec.Struct, frozen=True):
    """One page of a list: raw objects, the list's version, and the token of the next page."""

    items: list[msgspec.Raw]
    version: str
    token: str


def _read(
    decode: Callable[[bytes], T], response: Response, request: Request, error: type[KubeError]
) -> T:
    """The answer, or the error that stands for one which no API server gives, but a proxy may."""
    try:
        return decode(response.body)
    except UNREADABLE as why:
        asked = describe(request)
        raise error(f"the answer makes no sense: {why}", asked=asked) from why


def _decode_deep(body: bytes) -> _Page:
    """API servers store what is nested deeper than Python goes; it must not hide the others."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEPEST)
    try:
        return _page_decoder.decode(body)
    finally:
        sys.setrecursionlimit(usual)


def decode_page(body: bytes) -> Page:
    """Split a list into its items; their bytes live only as long as the page does."""
    try:
        page = _page_decoder.decode(body)
    except RecursionError:
        page = _decode_deep(body)
    return Page(page.items or [], page.metadata.version, page.metadata.token)


class Client:
    """Talks to one API server.

    Reads are repeated a few times, writes never. At most `writes_at_once` writes are under way,
    and each asks `permit` just before it is sent how many seconds the server may take over it;
    zero or less refuses it. `meter` hears of every write that was sent: what was asked, and `ok`
    or the name of the error.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        writes_at_once: int = 32,
        permit: Callable[[], float] = _always,
        meter: Callable[[Asked, str], None] | None = None,
    ) -> None:
        self.transport = transport
        self._clock = clock
        self._permit = permit
        self._meter = meter
        self._slots = asyncio.Semaphore(writes_at_once)
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._uncertain_until = float("-inf")

    async def read(
        self, request: Request, decode: Callable[[bytes], T], *, attempts: int = READ_ATTEMPTS
    ) -> T:
        """Read something, trying again while the server cannot serve."""
        for attempt in range(attempts):
            try:
                response = await self._send(request)
                return _read(decode, response, request, Unavailable)
            except (Unavailable, TooManyRequests) as error:
                if attempt == attempts - 1:
                    raise
                await self._clock.sleep(self._pause(attempt, error.retry_after))
        raise AssertionError("unreachable")

    async def read_all(
        self,
        resource: Resource,
        decode: Callable[[bytes], T],
        *,
        scope: Scope = EVERYTHING,
    ) -> list[T]:
        """Read a whole collection, page by page, in its most recent state.

        One object that we cannot read must not keep us from all the others: it is left out.
        """
        found: list[T] = []
        async for page in self.pages(resource, scope=scope):
            for item in page.items:
                with contextlib.suppress(*UNREADABLE):
                    found.append(decode(bytes(item)))
        return found

    async def pages(self, resource: Resource, *, scope: Scope = EVERYTHING) -> AsyncIterator[Page]:
        """Read a collection page by page; raises Gone when a page token has expired."""
        token = ""
        while True:
            request = verbs.list_page(resource, scope=scope, token=token)
            page = await self.read(request, decode_page)
            yield page
            token = page.token
            if not token:
                return

    async def write(self, request: Request, decode: Callable[[bytes], T]) -> T:
        """Write something once.

        Raises UnknownOutcome when it may have happened, MayNotWrite when it was not sent.
        """
        async with self._slots:
            seconds = self._permit()
            if seconds <= 0:
                raise MayNotWrite("not the leader", asked=describe(request))
            response = await self._send_write(verbs.limited(request, seconds))
            return _read(decode, response, request, UnknownOutcome)

    async def settle(self) -> None:
        """Wait until no write of ours is under way: each is answered, or refused by its limit."""
        await self._idle.wait()
        await self._clock.sleep(self._uncertain_until - self._clock.monotonic())

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def _send_write(self, request: Request) -> Response:
        expires = self._clock.monotonic() + request.timeout
        self._under_way += 1
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
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _send(self, request: Request) -> Response:
        try:
            response = await self.transport.send(request)
        except TransportError as error:
            raise from_transport(request, error) from error
        if not response.ok:
            raise from_response(request, response)
        return response

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
        pause = self._clock.jitter(longest / 2, longest)
        return max(pause, min(retry_after or 0.0, _LONGEST_PAUSE))
