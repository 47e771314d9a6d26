"""Connecting to an API server: addresses, TLS and proxies, and in plain words what went wrong."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from everynode.kube.config import Access
from everynode.kube.credentials import ConfigError, KeyPair
from everynode.kube.transport import TransportError
from everynode.kube.wire import Connection, Rhythm, WireError

CONNECT_LIMIT: Final = 10.0  # seconds
_PORTS: Final = {"http": 80, "https": 443}


class Dialler:
    """Makes connections to one server, all with the same certificate."""

    def __init__(self, access: Access, key_pair: KeyPair | None) -> None:
        """Prepare; raises ConfigError."""
        self._access = access
        self._server = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy) if access.proxy else None
        self._tls = tls_context(access, key_pair) if self._server.scheme == "https" else None
        self._rhythm = Rhythm()

    @property
    def prefix(self) -> str:
        """What goes before the path of a request: a proxy of plain HTTP wants to know the host."""
        forwarded = self._proxy is not None and self._tls is None
        return self._access.server if forwarded else self._server.path

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What every request carries because of the way it goes."""
        return self._proxy_headers() if self._tls is None else ()

    async def connect(self) -> Connection:
        """Connect; raises TransportError."""
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                if self._proxy is None:
                    return await self._reach(self._server, self._tls, name=self._name)
                return await self._connect_through(self._proxy)
        except (WireError, OSError) as error:  # TimeoutError is one
            raise self._failure(words(error)) from error

    @property
    def _name(self) -> str:
        return self._access.server_name or self._server.hostname or ""

    async def _reach(self, to: SplitResult, tls: ssl.SSLContext | None, *, name: str) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            partial(Connection, self._rhythm),
            to.hostname or "",
            to.port or _PORTS[to.scheme],
            ssl=tls,
            server_hostname=name if tls is not None else None,
        )
        return connection

    async def _connect_through(self, proxy: SplitResult) -> Connection:
        if proxy.scheme not in _PORTS:
            raise self._failure(f"proxies of {proxy.scheme}:// are not supported, use http://")
        tls = ssl.create_default_context() if proxy.scheme == "https" else None
        try:
            connection = await self._reach(proxy, tls, name=proxy.hostname or "")
        except OSError as error:
            raise self._failure(f"cannot reach the proxy: {_system_words(error)}") from error
        if self._tls is None:
            return connection
        try:
            await self._ask_for_tunnel(connection)
            await connection.start_tls(self._tls, self._name)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _ask_for_tunnel(self, connection: Connection) -> None:
        host = host_and_port(self._server, always=True)
        lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self._proxy_headers()]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1")
        answer = await connection.ask(request, bodiless=True)
        if not 200 <= answer.status < 300:
            raise self._failure(f"the proxy refused: {answer.status} {answer.reason}".strip())

    def _proxy_headers(self) -> tuple[tuple[str, str], ...]:
        if self._proxy is None or self._proxy.username is None:
            return ()
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return (("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)

    def _failure(self, what: str) -> TransportError:
        return TransportError(f"{host_and_port(self._server)}: {what}", sent=False)


def host_and_port(server: SplitResult, *, always: bool = False) -> str:
    """The server as the Host header names it; the port where it is not the usual one, or always."""
    host = server.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = _PORTS.get(server.scheme, 0)
    port = server.port or usual
    return host if port == usual and not always else f"{host}:{port}"


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


def words(error: Exception) -> str:
    """Say why a connection could not be made, and where that is known what to do."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted ({error.verify_message}); check the kubeconfig's "
                "certificate-authority and server"
            )
        case ssl.SSLError():
            reason = getattr(error, "reason", "") or error
            return (
                f"it does not answer in TLS ({reason}); if it is a plain server, the kubeconfig's "
                "server must begin with http://"
            )
        case TimeoutError() if error.errno is None:
            return "no answer in time"
        case OSError():
            return f"cannot connect: {_system_words(error)}"
    return str(error)


def _system_words(error: OSError) -> str:
    """Say what the system says; asyncio's own text names an address that is known already."""
    if error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
