"""HTTP transport: a pool of connections to one API server, and credentials that are renewed."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from everynode import __version__
from everynode.clock import Clock
from everynode.kube.auth.credentials import ConfigError, Identity
from everynode.kube.auth.kubeconfig import ClusterConfig
from everynode.kube.http.connect import Connector, host_and_port
from everynode.kube.http.http1 import Connection, HttpError, IncomingResponse
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError

MAX_CONNECTIONS: Final = 128  # watches and writes under way are far fewer
# A line of a watch is a whole object; etcd accepts 1.5 MB by default, and more if configured.
MAX_LINE_BYTES: Final = 2**24
# Load balancers drop idle connections after a minute or more; we close them before that.
_MAX_IDLE_SECONDS: Final = 30.0
# Characters that need no escaping in a path.
_PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=-._~"


class HttpStream:
    """A watch over HTTP; implements everynode.kube.transport.Stream."""

    def __init__(self, lease: _Lease, response: IncomingResponse, limit: float) -> None:
        self._lease = lease
        self._response = response
        self._limit = limit  # seconds, to read the whole of a response that is not a stream
        self.status = response.status
        self.headers = response.headers
        self._lines: deque[bytes] = deque()
        self._partial: list[bytes] = []  # pieces of a line whose end has not arrived
        self._size = 0  # of these pieces
        lease.connection.batch_reads()

    async def readline(self) -> bytes:
        """Return the next line, empty at the end."""
        while not self._lines:
            pieces = self._response.take_pieces()
            if pieces:
                for piece in pieces:
                    self._split(piece)
            elif self._response.complete:
                return self._rest()
            else:
                await self._wait_for_data()
        return self._lines.popleft()

    async def read(self) -> bytes:
        """Return the rest of the response, within the request's time limit."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limit, self._lease.connection.expire)
        try:
            while not self._response.complete:
                await self._wait_for_data()
        finally:
            timer.cancel()
        return self._response.take()

    async def close(self) -> None:
        """Close the connection: that of a stream cannot be used again."""
        self._lease.release()

    async def _wait_for_data(self) -> None:
        try:
            await self._lease.connection.wait_for_data()
        except HttpError as error:
            raise TransportError(f"the stream broke: {error}", sent=True) from error

    def _split(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._partial.append(first)
        self._size += len(first)
        if self._size > MAX_LINE_BYTES:
            limit = MAX_LINE_BYTES >> 20
            raise TransportError(f"the stream broke: a line is longer than {limit} MiB", sent=True)
        if rest:
            *whole, partial = rest
            lines = (b"".join(self._partial), *whole)
            self._lines.extend(line for line in (each.rstrip(b"\r") for each in lines) if line)
            self._partial, self._size = [partial], len(partial)

    def _rest(self) -> bytes:
        rest, self._partial = b"".join(self._partial).rstrip(b"\r"), []
        return rest


class _Lease:
    """A connection that is in use, and the pool to which it is returned."""

    __slots__ = ("_pool", "connection")

    def __init__(self, pool: _Pool, connection: Connection) -> None:
        self._pool: _Pool | None = pool
        self.connection = connection

    def release(self, *, reusable: bool = False) -> None:
        """Return the connection to the pool, which closes it unless it is reusable."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.put(self.connection, reusable=reusable)


class _Pool:
    """The connections to one server that use the same client certificate."""

    def __init__(self, connector: Connector, clock: Clock) -> None:
        self._connector = connector
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: deque[Connection] = deque()  # those idle for longest first
        self._busy: dict[Connection, None] = {}
        self._retired = False

    async def take(self, end: float) -> _Lease:
        """Lease a connection, a new one if necessary, before the loop's time `end`.

        Raises TransportError and TimeoutError.
        """
        self._close_stale()
        if self._idle and not self._slots.locked():
            await self._slots.acquire()  # does not wait
            found = self._idle.pop()
        else:
            async with asyncio.timeout_at(end):
                found = await self._wait_for_connection()
        self._busy[found] = None
        return _Lease(self, found)

    async def _wait_for_connection(self) -> Connection:
        await self._slots.acquire()
        try:
            self._close_stale()
            return self._idle.pop() if self._idle else await self._connector.connect()
        except BaseException:
            self._slots.release()
            raise

    def put(self, connection: Connection, *, reusable: bool) -> None:
        """Take back a connection."""
        self._slots.release()
        self._busy.pop(connection, None)
        if reusable and not connection.closed and not self._retired:
            connection.idle_since = self._clock.monotonic()
            self._idle.append(connection)
        else:
            connection.close()

    def retire(self) -> None:
        """Close idle connections now, and those in use when they are returned."""
        self._retired = True
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Close all connections, also those in use."""
        self.retire()
        for connection in self._busy:
            connection.close()

    def _close_stale(self) -> None:
        oldest = self._clock.monotonic() - _MAX_IDLE_SECONDS
        while self._idle and (self._idle[0].closed or self._idle[0].idle_since < oldest):
            self._idle.popleft().close()
        while self._idle and self._idle[-1].closed:
            self._idle.pop()


class HttpTransport:
    """Carries requests to one API server over HTTP/1.1."""

    def __init__(self, access: ClusterConfig, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._host = host_and_port(urlsplit(access.server))
        self._identity: Identity | None = None
        self._pool: _Pool | None = None
        self._retired: list[_Pool] = []
        self._target_prefix = ""  # precedes the path of every request
        self._proxy_headers: tuple[tuple[str, str], ...] = ()
        self._headers = ""  # of every request, encoded

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the whole response; raises TransportError."""
        # A first 401 may mean that our token or certificate has just been rotated.
        for last in (False, True):
            lease, response = await self._exchange(request, whole=True)
            lease.release(reusable=response.reusable)
            if response.status != 401 or last or not await self._has_new_identity():
                break
        if response.status == 401:
            self._raise_if_certificate_expired()
        return Response(response.status, response.take(), response.headers)

    async def open(self, request: Request) -> HttpStream:
        """Send a request whose response is a stream; the time limit is for its head."""
        for last in (False, True):
            lease, response = await self._exchange(request, whole=False)
            if response.status != 401 or last or not await self._has_new_identity():
                break
            lease.release()
        return HttpStream(lease, response, request.timeout)

    async def close(self) -> None:
        """Close all connections."""
        pools, self._retired = [*self._retired, self._pool], []
        self._pool = None
        for pool in pools:
            if pool is not None:
                pool.close()

    async def _exchange(self, request: Request, *, whole: bool) -> tuple[_Lease, IncomingResponse]:
        """Send a request and wait for the head of the response, or for the whole response."""
        loop = asyncio.get_running_loop()
        end = loop.time() + request.timeout
        pool = await self._current_pool()
        try:
            lease = await pool.take(end)
        except TimeoutError:
            message = f"{self._host}: it took too long to connect"
            raise TransportError(message, sent=False) from None
        connection = lease.connection
        # Costs half as much CPU as asyncio.timeout.
        timer = loop.call_at(end, connection.expire)
        try:
            urgent = request.method == "GET" or not whole
            response = await connection.send(self._encode(request), urgent=urgent)
            while whole and not response.complete:
                await connection.wait_for_data()
        except BaseException as error:
            lease.release()
            if isinstance(error, HttpError):
                raise TransportError(f"{self._host}: {error}", sent=True) from error
            raise
        finally:
            timer.cancel()
        return lease, response

    def _encode(self, request: Request) -> bytes:
        target = f"{self._target_prefix}{_path(request.path)}{_query(request.query)}"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._headers}Accept: {request.accept}\r\n"
        if request.body:
            head += (
                f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
            )
        elif request.method != "GET":
            head += "Content-Length: 0\r\n"
        return f"{head}\r\n".encode("latin-1") + request.body

    # --- Credentials -------------------------------------------------------------------------

    async def _current_pool(self) -> _Pool:
        """Return the pool of the current identity; another certificate needs another pool."""
        try:
            identity = await self._access.credentials.identity()
            if self._pool is None or identity is not self._identity:
                self._switch_identity(identity)
        except ConfigError as error:
            raise TransportError(str(error), sent=False) from error
        assert self._pool is not None
        return self._pool

    def _switch_identity(self, identity: Identity) -> None:
        before, pool = self._identity, self._pool
        if pool is None or before is None or before.key_pair != identity.key_pair:
            connector = Connector(self._access, identity.key_pair)
            self._pool = _Pool(connector, self._clock)
            self._target_prefix, self._proxy_headers = connector.target_prefix, connector.headers
            if pool is not None:
                pool.retire()
                self._retired.append(pool)
        self._identity = identity
        fields = (
            ("Host", self._host),
            ("User-Agent", f"everynode/{__version__}"),
            # Decompressing a response costs as much as decoding it.
            ("Accept-Encoding", "identity"),
            *self._proxy_headers,
            *identity.headers,
        )
        self._headers = "".join([f"{name}: {_header_value(value)}\r\n" for name, value in fields])

    async def _has_new_identity(self) -> bool:
        """Return whether, after a 401, the credentials have another identity to try."""
        self._access.credentials.reject()
        try:
            return await self._access.credentials.identity() != self._identity
        except ConfigError as error:
            raise TransportError(str(error), sent=False) from error

    def _raise_if_certificate_expired(self) -> None:
        pair = self._identity.key_pair if self._identity else None
        expiry = certificate_expiry(pair.certificate) if pair else None
        if expiry is not None and expiry < self._clock.now():
            raise TransportError("our client certificate has expired; renew it", sent=False)


def certificate_expiry(certificate: bytes) -> float | None:
    """Return when a PEM certificate expires, in epoch seconds; None where it cannot be read."""
    # Imported here because it is needed only after a 401.
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    # Nearly all requests carry one of a few queries.
    return f"?{urlencode(pairs)}" if pairs else ""


def _path(path: str) -> str:
    """Return the path with characters escaped that are invalid in a request."""
    ordinary = path.isascii() and path.isprintable() and " " not in path
    return path if ordinary else quote(path, safe=_PATH_CHARACTERS)


def _header_value(value: str) -> str:
    if not value.isprintable() or not value.isascii():
        raise ConfigError("a header of our credentials contains characters that cannot be sent")
    return value
