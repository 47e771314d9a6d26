"""Connecting to a server: error messages, and requests to proxies."""

from __future__ import annotations

import asyncio
import errno
import ssl
from urllib.parse import urlsplit

import pytest

from everynode.kube.auth.credentials import Identity, StaticCredentials
from everynode.kube.auth.kubeconfig import ClusterConfig
from everynode.kube.http.connect import Connector, describe_failure, host_and_port
from everynode.kube.transport import TransportError
from tests.support.raw_server import raw_server

NO_CREDENTIALS = StaticCredentials(Identity())


@pytest.mark.parametrize(
    ("server", "usual", "always"),
    [
        ("https://api.example", "api.example", "api.example:443"),
        ("https://api.example:6443", "api.example:6443", "api.example:6443"),
        ("http://[::1]:80/prefix", "[::1]", "[::1]:80"),
    ],
)
def test_a_server_is_named_as_the_host_header_wants_it(
    server: str, usual: str, always: str
) -> None:
    assert host_and_port(urlsplit(server)) == usual
    assert host_and_port(urlsplit(server), always=True) == always


def test_a_plain_http_proxy_gets_the_host_and_our_credentials() -> None:
    access = ClusterConfig(
        "http://api.example/prefix", NO_CREDENTIALS, proxy="http://ada:se%20cret@proxy:3128"
    )
    connector = Connector(access, None)
    assert connector.target_prefix == "http://api.example/prefix"
    assert connector.headers == (("Proxy-Authorization", "Basic YWRhOnNlIGNyZXQ="),)


def test_a_server_is_not_told_what_its_proxy_is() -> None:
    access = ClusterConfig(
        "https://api.example/prefix", NO_CREDENTIALS, proxy="http://ada:secret@proxy:3128"
    )
    connector = Connector(access, None)
    assert (connector.target_prefix, connector.headers) == ("/prefix", ())


async def test_an_unsupported_proxy_is_refused_with_a_message() -> None:
    connector = Connector(
        ClusterConfig("http://api.example", NO_CREDENTIALS, proxy="socks5://proxy:1"), None
    )
    with pytest.raises(TransportError, match="socks5:// are not supported") as caught:
        await connector.connect()
    assert not caught.value.sent


async def test_a_proxy_that_is_not_there_is_named() -> None:
    connector = Connector(
        ClusterConfig("http://api.example", NO_CREDENTIALS, proxy="http://127.0.0.1:1"), None
    )
    with pytest.raises(TransportError, match="cannot reach the proxy: Connection refused"):
        await connector.connect()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ECONNREFUSED, "a text with [Errno 111]"), "cannot connect: Connection ref"),
        (OSError("Multiple exceptions"), "cannot connect: Multiple exceptions"),
        (TimeoutError(), "no answer in time"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "it does not answer in TLS"),
    ],
)
def test_a_failed_connection_is_explained(error: OSError, expected: str) -> None:
    assert describe_failure(error).startswith(expected)


@pytest.mark.parametrize(
    ("answer", "then", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Long: x\r\n" * 1000, "head of the response is too long"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "head of the response is too long"),
        (b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03", b"", "sent more than its answer to CONNECT"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"", "the server answers 101"),
        (b"HTTP/1.1 407 \x1b[2JNo" + b"x" * 500 + b"\r\n\r\n", b"", r"407 \[2JNox{95}$"),
        (b"HTTP/1.1 200 O", b"", "no answer in time"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"", "no answer in time"),
    ],
)
async def test_a_misbehaving_proxy_is_given_up_with_a_message(
    answer: bytes, then: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words == "no answer in time":
        monkeypatch.setattr("everynode.kube.http.connect.CONNECT_SECONDS", 0.2)
    async with raw_server(answer, then=then) as (proxy, _), asyncio.timeout(60):
        access = ClusterConfig(
            "https://api.example:6443", NO_CREDENTIALS, insecure=True, proxy=proxy
        )
        with pytest.raises(TransportError, match=words) as caught:
            await Connector(access, None).connect()
    assert not caught.value.sent
