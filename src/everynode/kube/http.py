"""The transport over HTTP: a pool of connections, and credentials that are renewed."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from everynode import __version__
from everynode.clock import Clock
from everynode.kube.certificates import expiry_of
from everynode.kube.config import Access
from everynode.kube.credentials import ConfigError, Identity
from everynode.kube.dial import Dialler, host_and_port
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError
from everynode.kube.wire import Answer, Connection, WireError

CONNECTIONS: Final = 128  # watches and writes under way are far fewer
# A line of a watch is a whole object, and etcd takes objects of up to 1.5 MB (more if it is told
# to).
LONGEST_LINE: Final = 2**24
# Load balancers forget idle connections after a minute or more; we do so before them.
_KEEP_ALIVE: Final = 30.0
# What a path may contain as it is.
_PLAIN: Final = "/%:@!$&'()*+,;=-._~"


class HttpStream:
    """A watch over HTTP."""

    def __init__(self, line: _Line, answer: Answer) -> None:
        self._line = line
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers
        self._lines: deque[bytes] = deque()
        self._half: list[bytes] = []  # of the next line
        self._size = 0  # of that
        line.connection.gather()

    async def readline(self) -> bytes:
        """Return the next line, empty at the end."""
        while not self._lines:
            data = self._answer.take()
            if data:
                self._split(data)
            elif self._answer.complete:
                return self._last()
            else:
                await self._more()
        return self._lines.popleft()

    async def read(self) -> bytes:
        """Return all that is left."""
        while not self._answer.complete:
            await self._more()
        return self._answer.take()

    async def close(self) -> None:
        """Close the connection; a stream's cannot be used again."""
        self._line.hang_up()

    async def _more(self) -> None:
        try:
            await self._line.connection.more()
        except WireError as error:
            raise TransportError(f"the stream broke: {error}", sent=True) from error

    def _split(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._half.append(first)
        self._size += len(first)
        if self._size > LONGEST_LINE:
            raise TransportError("the stream broke: a line has no end", sent=True)
        if rest:
            *whole, half = rest
            lines = (b"".join(self._half), *whole)
            self._lines.extend(line for line in (each.rstrip(b"\r") for each in lines) if line)
            self._half, self._size = [half], len(half)

    def _last(self) -> bytes:
        rest, self._half = b"".join(self._half).rstrip(b"\r"), []
        return rest


class _Line:
    """A connection in use, and the pool it goes back to."""

    __slots__ = ("_pool", "connection")

    def __init__(self, pool: _Pool, connection: Connection) -> None:
        self._pool: _Pool | None = pool
        self.connection = connection

    def hang_up(self, *, reusable: bool = False) -> None:
        """Give the connection back, or close it where it cannot be used again."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.put(self.connection, reusable=reusable)


class _Pool:
    """The connections of one identity to one server."""

    def __init__(self, dialler: Dialler, clock: Clock) -> None:
        self._dialler = dialler
        self._clock = clock
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._idle: deque[Connection] = deque()  # the longest idle first
        self._busy: dict[Connection, None] = {}
        self._retired = False

    async def take(self) -> _Line:
        """Return a connection, a new one if need be; raises TransportError."""
        await self._slots.acquire()
        try:
            self._drop_stale()
            found = self._idle.pop() if self._idle else await self._dialler.connect()
        except BaseException:
            self._slots.release()
            raise
        self._busy[found] = None
        return _Line(self, found)

    def put(self, connection: Connection, *, reusable: bool) -> None:
        """Take a connection back."""
        self._slots.release()
        self._busy.pop(connection, None)
        if reusable and not connection.closed and not self._retired:
            connection.idle_since = self._clock.monotonic()
            self._idle.append(connection)
        else:
            connection.close()

    def retire(self) -> None:
        """Close what is idle; what is in use may end in peace."""
        self._retired = True
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Close everything."""
        self.retire()
        for connection in self._busy:
            connection.close()

    def _drop_stale(self) -> None:
        oldest = self._clock.monotonic() - _KEEP_ALIVE
        while self._idle and (self._idle[0].closed or self._idle[0].idle_since < oldest):
            self._idle.popleft().close()
        while self._idle and self._idle[-1].closed:
            self._idle.pop()


class HttpTransport:
    """Carries requests to one API server over HTTP/1.1."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._host = host_and_port(urlsplit(access.server))
        self._identity: Identity | None = None
        self._pool: _Pool | None = None
        self._retired: list[_Pool] = []
        self._prefix = ""  # of every target
        self._way: tuple[tuple[str, str], ...] = ()  # headers for those on the way
        self._headers = ""  # of every request

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the whole answer; raises TransportError."""
        # The first time 401 may mean that our credentials have just been renewed elsewhere.
        for last in (False, True):
            line, answer = await self._ask(request, whole=True)
            line.hang_up(reusable=answer.reusable)
            if answer.status != 401 or last or not await self._renewed():
                break
        if answer.status == 401:
            self._refuse_expired()
        return Response(answer.status, answer.take(), answer.headers)

    async def open(self, request: Request) -> HttpStream:
        """Send a request whose answer is a stream; the time limit is for its beginning."""
        for last in (False, True):
            line, answer = await self._ask(request, whole=False)
            if answer.status != 401 or last or not await self._renewed():
                break
            line.hang_up()
        return HttpStream(line, answer)

    async def close(self) -> None:
        """Close all connections."""
        pools, self._retired = [*self._retired, self._pool], []
        self._pool = None
        for pool in pools:
            if pool is not None:
                pool.close()

    async def _ask(self, request: Request, *, whole: bool) -> tuple[_Line, Answer]:
        """Send a request and wait for the head of the answer, or for the whole of it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + request.timeout
        pool = await self._ready()
        line = await pool.take()
        connection = line.connection
        if loop.time() >= end:
            line.hang_up(reusable=True)
            raise TransportError(f"{self._host}: it took too long to connect", sent=False)
        # Half the price of asyncio.timeout, which is made for more than that.
        timer = loop.call_at(end, connection.expire)
        try:
            urgent = request.method == "GET" or not whole
            answer = await connection.ask(self._encode(request), urgent=urgent)
            while whole and not answer.complete:
                await connection.more()
        except BaseException as error:
            line.hang_up()
            if isinstance(error, WireError):
                raise TransportError(f"{self._host}: {error}", sent=True) from error
            raise
        finally:
            timer.cancel()
        return line, answer

    def _encode(self, request: Request) -> bytes:
        target = f"{self._prefix}{_path(request.path)}{_query(request.query)}"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._headers}Accept: {request.accept}\r\n"
        if request.body:
            head += (
                f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
            )
        elif request.method != "GET":
            head += "Content-Length: 0\r\n"
        return f"{head}\r\n".encode("latin-1") + request.body

    # --- Who we are --------------------------------------------------------------------------

    async def _ready(self) -> _Pool:
        """Return the pool of our present identity; another certificate needs another one."""
        try:
            identity = await self._access.credentials.identity()
            if self._pool is None or identity is not self._identity:
                self._change_to(identity)
        except ConfigError as error:
            raise TransportError(str(error), sent=False) from error
        assert self._pool is not None
        return self._pool

    def _change_to(self, identity: Identity) -> None:
        before, pool = self._identity, self._pool
        if pool is None or before is None or before.key_pair != identity.key_pair:
            dialler = Dialler(self._access, identity.key_pair)
            self._pool = _Pool(dialler, self._clock)
            self._prefix, self._way = dialler.prefix, dialler.headers
            if pool is not None:
                pool.retire()
                self._retired.append(pool)
        self._identity = identity
        fields = (
            ("Host", self._host),
            ("User-Agent", f"everynode/{__version__}"),
            # Inflating an answer costs as much as decoding it.
            ("Accept-Encoding", "identity"),
            *self._way,
            *identity.headers,
        )
        self._headers = "".join([f"{name}: {_one_line(value)}\r\n" for name, value in fields])

    async def _renewed(self) -> bool:
        """After a 401: whether there is another identity to try."""
        self._access.credentials.reject()
        try:
            return await self._access.credentials.identity() != self._identity
        except ConfigError as error:
            raise TransportError(str(error), sent=False) from error

    def _refuse_expired(self) -> None:
        pair = self._identity.key_pair if self._identity else None
        expiry = expiry_of(pair.certificate) if pair else None
        if expiry is not None and expiry < self._clock.now():
            raise TransportError("our client certificate has expired; renew it", sent=False)


@lru_cache(maxsize=256)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    # Nearly all requests carry one of a few queries.
    return f"?{urlencode(pairs)}" if pairs else ""


def _path(path: str) -> str:
    """The path as it may stand in a request, whatever names people type."""
    ordinary = path.isascii() and path.isprintable() and " " not in path
    return path if ordinary else quote(path, safe=_PLAIN)


def _one_line(value: str) -> str:
    if not value.isprintable() or not value.isascii():
        raise ConfigError("a header of our credentials contains characters that cannot be sent")
    return value
