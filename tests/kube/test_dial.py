"""The way to a server: what is said of it, and what proxies are told."""

from __future__ import annotations

import errno
import ssl
from urllib.parse import urlsplit

import pytest

from everynode.kube.config import Access
from everynode.kube.credentials import Fixed, Identity
from everynode.kube.dial import Dialler, host_and_port, words
from everynode.kube.transport import TransportError

NOBODY = Fixed(Identity())


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


def test_a_proxy_of_plain_http_is_told_the_host_and_who_we_are() -> None:
    access = Access("http://api.example/prefix", NOBODY, proxy="http://ada:se%20cret@proxy:3128")
    dialler = Dialler(access, None)
    assert dialler.prefix == "http://api.example/prefix"
    assert dialler.headers == (("Proxy-Authorization", "Basic YWRhOnNlIGNyZXQ="),)


def test_a_server_is_not_told_what_its_proxy_is() -> None:
    access = Access("https://api.example/prefix", NOBODY, proxy="http://ada:secret@proxy:3128")
    dialler = Dialler(access, None)
    assert (dialler.prefix, dialler.headers) == ("/prefix", ())


async def test_a_proxy_of_another_kind_is_refused_in_words() -> None:
    dialler = Dialler(Access("http://api.example", NOBODY, proxy="socks5://proxy:1"), None)
    with pytest.raises(TransportError, match="socks5:// are not supported") as caught:
        await dialler.connect()
    assert not caught.value.sent


async def test_a_proxy_that_is_not_there_is_named() -> None:
    dialler = Dialler(Access("http://api.example", NOBODY, proxy="http://127.0.0.1:1"), None)
    with pytest.raises(TransportError, match="cannot reach the proxy: Connection refused"):
        await dialler.connect()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ECONNREFUSED, "a text with [Errno 111]"), "cannot connect: Connection ref"),
        (OSError("Multiple exceptions"), "cannot connect: Multiple exceptions"),
        (TimeoutError(), "no answer in time"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "it does not answer in TLS"),
    ],
)
def test_what_went_wrong_is_said_in_plain_words(error: OSError, expected: str) -> None:
    assert words(error).startswith(expected)
