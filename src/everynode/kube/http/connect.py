"""Connector: opens connections to an API server, through TLS and proxies, and explains failures."""

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

from everynode.kube.auth.credentials import ConfigError, KeyPair
from everynode.kube.auth.kubeconfig import ClusterConfig
from everynode.kube.http.http1 import Connection, HttpError
from everynode.kube.http.read_batching import ReadBatcher
from everynode.kube.transport import TransportError

CONNECT_SECONDS: Final = 10.0  # seconds
_MAX_REASON: Final = 100  # characters of the reason that a proxy gives
_PORTS: Final = {"http": 80, "https": 443}


class Connector:
    """Opens connections to one server, all with the same client certificate."""

    def __init__(self, access: ClusterConfig, key_pair: KeyPair | None) -> None:
        """Load the certificates; raises ConfigError."""
        self._access = access
        self._server = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy) if access.proxy else None
        self._tls = tls_context(access, key_pair) if self._server.scheme == "https" else None
        self._batcher = ReadBatcher()

    @property
    def target_prefix(self) -> str:
        """The text before the path in a request; a proxy of plain HTTP needs the whole URL."""
        forwarded = self._proxy is not None and self._tls is None
        return self._access.server if forwarded else self._server.path

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers that every request carries for a proxy of plain HTTP."""
        return self._proxy_headers() if self._tls is None else ()

    async def connect(self) -> Connection:
        """Open a connection; raises TransportError."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if self._proxy is None:
                    return await self._open_connection(self._server, self._tls, name=self._name)
                return await self._connect_through(self._proxy)
        except (HttpError, OSError) as error:  # TimeoutError is one
            raise self._connect_error(describe_failure(error)) from error

    @property
    def _name(self) -> str:
        return self._access.server_name or self._server.hostname or ""

    async def _open_connection(
        self, to: SplitResult, tls: ssl.SSLContext | None, *, name: str
    ) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            partial(Connection, self._batcher),
            to.hostname or "",
            to.port or _PORTS[to.scheme],
            ssl=tls,
            server_hostname=name if tls is not None else None,
        )
        return connection

    async def _connect_through(self, proxy: SplitResult) -> Connection:
        if proxy.scheme not in _PORTS:
            raise self._connect_error(
                f"proxies of {proxy.scheme}:// are not supported, use http://"
            )
        tls = ssl.create_default_context() if proxy.scheme == "https" else None
        try:
            connection = await self._open_connection(proxy, tls, name=proxy.hostname or "")
        except OSError as error:
            raise self._connect_error(
                f"cannot reach the proxy: {_system_message(error)}"
            ) from error
        if self._tls is None:
            return connection
        try:
            await self._open_tunnel(connection)
            await connection.start_tls(self._tls, self._name)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _open_tunnel(self, connection: Connection) -> None:
        host = host_and_port(self._server, always=True)
        lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self._proxy_headers()]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1")
        response = await connection.send(request, head_only=True)
        if not 200 <= response.status < 300:
            reason = "".join(filter(str.isprintable, response.reason))[:_MAX_REASON]
            raise self._connect_error(f"the proxy refused: {response.status} {reason}".strip())
        if response.extra_data or connection.closed:
            # In TLS the client sends first, so these bytes come from the proxy itself.
            raise self._connect_error("the proxy sent more than its answer to CONNECT")

    def _proxy_headers(self) -> tuple[tuple[str, str], ...]:
        if self._proxy is None or self._proxy.username is None:
            return ()
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return (("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)

    def _connect_error(self, what: str) -> TransportError:
        return TransportError(f"{host_and_port(self._server)}: {what}", sent=False)


def host_and_port(server: SplitResult, *, always: bool = False) -> str:
    """Return the Host header of a server: its port is left out where it is the default one."""
    host = server.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = _PORTS.get(server.scheme, 0)
    port = server.port or usual
    return host if port == usual and not always else f"{host}:{port}"


def tls_context(access: ClusterConfig, key_pair: KeyPair | None) -> ssl.SSLContext:
    """Build the TLS context: the cluster's CA, our client certificate; raises ConfigError."""
    try:
        context = ssl.create_default_context(cadata=access.ca.decode("ascii") or None)
    except (ssl.SSLError, UnicodeDecodeError):
        raise ConfigError(
            "the cluster's certificate authority is not a certificate in PEM form"
        ) from None
    # Many cluster CAs lack extensions that the strict mode demands; Go programs accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if key_pair is not None:
        _load_key_pair(context, key_pair)
    return context


def _load_key_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    # The ssl module reads files only; these are private and deleted at once.
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


def describe_failure(error: Exception) -> str:
    """Explain why a connection could not be opened, and what to do where that is known."""
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
            return f"cannot connect: {_system_message(error)}"
    return str(error)


def _system_message(error: OSError) -> str:
    """Return the system's message; asyncio's own text repeats the address."""
    if error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
