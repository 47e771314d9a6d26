"""The transport over HTTP: a pool of connections, TLS, and credentials that are renewed."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from everynode import __version__
from everynode.clock import Clock
from everynode.kube.certificates import expiry_of
from everynode.kube.config import Access
from everynode.kube.credentials import ConfigError, Identity, KeyPair
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError

# A line of a watch is a whole object, and etcd takes objects of up to 1.5 MB (more if it is told
# to); aiohttp refuses lines longer than twice this.
READ_BUFFER: Final = 2**21
CONNECTIONS: Final = 128  # watches and writes under way are far fewer
_CONNECT_LIMIT: Final = 10.0
# Load balancers forget idle connections after a minute or more; we do so before them.
_KEEP_ALIVE: Final = 30.0


class HttpStream:
    """A watch over HTTP."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = _headers(response)

    async def readline(self) -> bytes:
        """Return the next line, empty at the end."""
        try:
            while True:
                line = await self._response.content.readline()
                stripped = line.rstrip(b"\r\n")
                if stripped or not line:
                    return stripped
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise TransportError(f"the stream broke: {_words(error)}", sent=True) from error

    async def read(self) -> bytes:
        """Return all that is left."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"the stream broke: {_words(error)}", sent=True) from error

    async def close(self) -> None:
        """Close the connection; a stream's cannot be used again."""
        self._response.close()


class HttpTransport:
    """Carries requests to one API server over HTTP/1.1."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._base = URL(access.server)
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._identity: Identity | None = None
        self._headers: CIMultiDict[str] = CIMultiDict()

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the whole answer; raises TransportError."""
        try:
            # The first time 401 may mean that our credentials have just been renewed elsewhere.
            for last in (False, True):
                async with asyncio.timeout(request.timeout):
                    response = await self._begin(request)
                    body = await response.read()
                if response.status != 401 or last or not await self._renewed():
                    break
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is one
            raise self._failure(error) from error
        if response.status == 401:
            self._refuse_expired()
        return Response(response.status, body, _headers(response))

    async def open(self, request: Request) -> HttpStream:
        """Send a request whose answer is a stream; the time limit is for its beginning."""
        try:
            for last in (False, True):
                async with asyncio.timeout(request.timeout):
                    response = await self._begin(request)
                if response.status != 401 or last or not await self._renewed():
                    break
                response.close()
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from error
        return HttpStream(response)

    async def close(self) -> None:
        """Close all connections."""
        sessions, self._retired = [*self._retired, self._session], []
        self._session = None
        for session in sessions:
            if session is not None:
                await session.close()

    async def _begin(self, request: Request) -> aiohttp.ClientResponse:
        session = await self._ready()
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        if request.body:
            headers["Content-Type"] = request.content_type
        return await session.request(
            request.method,
            self._url(request),
            data=request.body or None,
            headers=headers,
            allow_redirects=False,
            proxy=self._access.proxy or None,
            server_hostname=self._access.server_name or None,
        )

    def _url(self, request: Request) -> URL:
        return URL(f"{self._access.server}{request.path}{_query(request.query)}", encoded=True)

    # --- Who we are --------------------------------------------------------------------------

    async def _ready(self) -> aiohttp.ClientSession:
        """Return the session of our present identity; another certificate needs another one."""
        try:
            identity = await self._access.credentials.identity()
            if self._session is None or identity is not self._identity:
                self._change_to(identity)
        except ConfigError as error:
            raise TransportError(str(error), sent=False) from error
        assert self._session is not None
        return self._session

    def _change_to(self, identity: Identity) -> None:
        before, session = self._identity, self._session
        if session is None or before is None or before.key_pair != identity.key_pair:
            self._session = self._new_session(identity.key_pair)
            if session is not None:
                # Requests and watches under way on it may end in peace.
                self._retired.append(session)
        self._identity = identity
        self._headers = CIMultiDict(identity.headers)

    def _new_session(self, key_pair: KeyPair | None) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS,
            keepalive_timeout=_KEEP_ALIVE,
            ssl=tls_context(self._access, key_pair) if self._base.scheme == "https" else True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_LIMIT),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Inflating an answer costs as much as decoding it.
            headers={"Accept-Encoding": "identity", "User-Agent": f"everynode/{__version__}"},
            auto_decompress=False,
            read_bufsize=READ_BUFFER,
        )

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

    def _failure(self, error: Exception) -> TransportError:
        return TransportError(
            f"{self._base.host_port_subcomponent}: {_words(error)}", sent=_may_have_acted(error)
        )


def tls_context(access: Access, key_pair: KeyPair | None) -> ssl.SSLContext:
    """Return what we trust and what we show; raises ConfigError."""
    try:
        context = ssl.create_default_context(cadata=access.ca.decode("ascii") or None)
    except (ssl.SSLError, UnicodeDecodeError):
        raise ConfigError(
            "the cluster's certificate authority is not a certificate in PEM form"
        ) from None
    # Cluster authorities are often made by simple tools; what Go programs accept we do too.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if key_pair is not None:
        _load_key_pair(context, key_pair)
    return context


def _load_key_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    # The library reads files only; these are ours alone and gone at once.
    with tempfile.TemporaryDirectory(prefix="everynode-") as folder:
        certificate, key = Path(folder, "certificate"), Path(folder, "key")
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise ConfigError(
                "the client certificate and its key do not belong together or are not PEM: "
                f"{error.reason}"
            ) from None


@lru_cache(maxsize=256)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    # Nearly all requests carry one of a few queries.
    return f"?{urlencode(pairs)}" if pairs else ""


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _may_have_acted(error: Exception) -> bool:
    never = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
    return not isinstance(error, (*never, aiohttp.ClientHttpProxyError))


def _words(error: Exception) -> str:
    """Say what went wrong on the wire, and where that is known what to do."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", error.certificate_error)
            return (
                f"its certificate is not trusted ({reason}); check the kubeconfig's "
                "certificate-authority and server"
            )
        case aiohttp.ClientConnectorSSLError():
            reason = getattr(error.os_error, "reason", "") or error.os_error
            return (
                f"it does not answer in TLS ({reason}); if it is a plain server, the kubeconfig's "
                "server must begin with http://"
            )
        case aiohttp.ClientProxyConnectionError():
            return f"cannot reach the proxy: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused: {error.status} {error.message}"
        case aiohttp.ClientConnectorError():
            return f"cannot connect: {_system_words(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer came"
        case TimeoutError():
            return "no answer in time"
    return str(error) or type(error).__name__


def _system_words(error: OSError) -> str:
    """Say what the system says; asyncio's own text names an address that is known already."""
    if error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
