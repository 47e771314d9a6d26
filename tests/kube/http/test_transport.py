"""The transport against a real server: TLS, certificates, proxies, streams that break."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from everynode.clock import SystemClock
from everynode.kube.auth.credentials import (
    CredentialFiles,
    FileCredentials,
    Identity,
    KeyPair,
    StaticCredentials,
    bearer_header,
)
from everynode.kube.auth.kubeconfig import ClusterConfig
from everynode.kube.http.transport import HttpStream, HttpTransport, certificate_expiry
from everynode.kube.requests import MERGE_PATCH, Request
from everynode.kube.transport import TransportError
from tests.support.certificate_authority import END, Authority
from tests.support.raw_server import raw_server

NO_CREDENTIALS = StaticCredentials(Identity())


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


class Server:
    """Records each request, its user and its headers."""

    def __init__(self) -> None:
        self.token = ""
        self.asked: list[dict[str, Any]] = []
        self.url = ""
        self.closing = asyncio.Event()

    async def echo(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        names = dict(pair[0] for pair in certificate["subject"]) if certificate else {}
        asked = {
            "method": request.method,
            "target": request.raw_path,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": (await request.read()).decode(),
            "user": names.get("commonName", ""),
        }
        self.asked.append(asked)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        return web.json_response(asked, headers={"X-Kubernetes-Note": "Yes"})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        size = int(request.query.get("size", "10"))
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"n":1}\n\n')
        await response.write(b'{"n":"' + b"x" * size + b'"}\n')
        if "tear" in request.query:
            await response.write(b'{"half":')
            assert request.transport is not None
            request.transport.close()
        return response

    async def hang(self, request: web.Request) -> web.Response:
        if "close" in request.query:
            assert request.transport is not None
            request.transport.close()
        else:
            await self.closing.wait()
        return web.Response()


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_get("/watch", server.watch)
    app.router.add_route("*", "/hang", server.hang)
    app.router.add_route("*", "/{tail:.*}", server.echo)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"{'https' if context else 'http'}://{host}:{port}"
    try:
        yield server
    finally:
        server.closing.set()
        await runner.cleanup()


@asynccontextmanager
async def talking(access: ClusterConfig) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(access, SystemClock())
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture
def context(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return authority.server_context(tmp_path, authority.issue("server"))


async def test_request_and_answer_pass_unchanged() -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        request = Request(
            "PATCH",
            "/api/v1/namespaces/n/pods/p",
            (("fieldManager", "everynode"), ("labelSelector", "a in (b,c),d!=e")),
            b'{"a":"\xc3\xa4"}',
            MERGE_PATCH,
        )
        response = await transport.send(request)
        assert response.ok
        assert response.headers["x-kubernetes-note"] == "Yes"
        asked = json.loads(response.body)
        assert asked["target"] == (
            "/api/v1/namespaces/n/pods/p"
            "?fieldManager=everynode&labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De"
        )
        assert (asked["method"], asked["body"]) == ("PATCH", '{"a":"ä"}')
        assert asked["headers"]["content-type"] == MERGE_PATCH
        assert asked["headers"]["accept"] == "application/json"
        assert asked["headers"]["accept-encoding"] == "identity"
        assert asked["headers"]["user-agent"].startswith("everynode/")


async def test_server_under_a_path_is_reached() -> None:
    async with (
        serving() as server,
        talking(ClusterConfig(f"{server.url}/k8s/c-1", NO_CREDENTIALS)) as transport,
    ):
        asked = json.loads((await transport.send(Request("GET", "/version"))).body)
        assert asked["target"] == "/k8s/c-1/version"


async def test_trusted_server_is_spoken_to_with_token_and_certificate(
    context: ssl.SSLContext, authority: Authority
) -> None:
    pair = authority.issue("ada")
    identity = Identity((bearer_header("secret"),), KeyPair(pair.certificate, pair.key))
    async with serving(context) as server:
        access = ClusterConfig(server.url, StaticCredentials(identity), ca=authority.certificate)
        async with talking(access) as transport:
            asked = json.loads((await transport.send(Request("GET", "/version"))).body)
    assert asked["user"] == "ada"
    assert asked["headers"]["authorization"] == "Bearer secret"


async def test_untrusted_server_is_refused_with_words_that_help(context: ssl.SSLContext) -> None:
    async with serving(context) as server:
        async with talking(
            ClusterConfig(server.url, NO_CREDENTIALS, ca=Authority().certificate)
        ) as transport:
            with pytest.raises(TransportError, match="certificate is not trusted") as caught:
                await transport.send(Request("POST", "/x", body=b"{}"))
        assert not caught.value.sent
        async with talking(ClusterConfig(server.url, NO_CREDENTIALS, insecure=True)) as transport:
            assert (await transport.send(Request("GET", "/x"))).ok


async def test_a_plain_server_that_is_asked_in_tls_is_named_so() -> None:
    async with serving(None) as server:
        url = server.url.replace("http:", "https:")
        async with talking(ClusterConfig(url, NO_CREDENTIALS, insecure=True)) as transport:
            with pytest.raises(TransportError, match=r"it does not answer in TLS .* http://"):
                await transport.send(Request("GET", "/x"))


async def test_a_name_that_does_not_resolve_is_said_in_plain_words() -> None:
    async with talking(ClusterConfig("https://nowhere.invalid:1", NO_CREDENTIALS)) as transport:
        with pytest.raises(
            TransportError, match=r"nowhere.invalid:1: cannot connect: \w"
        ) as caught:
            await transport.send(Request("GET", "/x"))
    assert "Errno" not in str(caught.value)


async def test_expired_server_certificate_is_named(authority: Authority, tmp_path: Path) -> None:
    end = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)
    context = authority.server_context(tmp_path, authority.issue("server", end=end))
    async with (
        serving(context) as server,
        talking(ClusterConfig(server.url, NO_CREDENTIALS, ca=authority.certificate)) as transport,
    ):
        with pytest.raises(TransportError, match="certificate has expired"):
            await transport.send(Request("GET", "/x"))


async def test_the_name_in_the_certificate_may_be_another(
    authority: Authority, tmp_path: Path
) -> None:
    context = authority.server_context(tmp_path, authority.issue("server", host="api.example"))
    async with serving(context) as server:
        access = ClusterConfig(
            server.url, NO_CREDENTIALS, ca=authority.certificate, server_name="api.example"
        )
        async with talking(access) as transport:
            assert (await transport.send(Request("GET", "/x"))).ok
        async with talking(
            ClusterConfig(server.url, NO_CREDENTIALS, ca=authority.certificate)
        ) as transport:
            with pytest.raises(TransportError, match="IP address mismatch"):
                await transport.send(Request("GET", "/x"))


async def test_our_own_expired_certificate_is_named(tmp_path: Path, authority: Authority) -> None:
    end = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)
    pair = authority.issue("ada", end=end)
    identity = Identity(key_pair=KeyPair(pair.certificate, pair.key))
    async with serving() as server:
        server.token = "another user's"
        async with talking(ClusterConfig(server.url, StaticCredentials(identity))) as transport:
            with pytest.raises(TransportError, match="our client certificate has expired"):
                await transport.send(Request("GET", "/x"))


async def test_certificate_that_does_not_fit_its_key_is_named(authority: Authority) -> None:
    one, other = authority.issue("ada"), authority.issue("bob")
    identity = Identity(key_pair=KeyPair(one.certificate, other.key))
    async with talking(
        ClusterConfig("https://127.0.0.1:1", StaticCredentials(identity))
    ) as transport:
        with pytest.raises(TransportError, match="do not belong together") as caught:
            await transport.send(Request("GET", "/x"))
    assert not caught.value.sent


async def test_authority_that_is_no_certificate_is_named() -> None:
    async with talking(
        ClusterConfig("https://127.0.0.1:1", NO_CREDENTIALS, ca=b"nonsense")
    ) as transport:
        with pytest.raises(TransportError, match="not a certificate in PEM form"):
            await transport.send(Request("GET", "/x"))


async def test_server_that_is_not_there_has_not_acted() -> None:
    async with talking(ClusterConfig("http://127.0.0.1:1", NO_CREDENTIALS)) as transport:
        with pytest.raises(TransportError, match=r"127\.0\.0\.1:1: cannot connect") as caught:
            await transport.send(Request("POST", "/x", body=b"{}"))
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("query", "words"),
    [((), "no answer in time"), ((("close", ""),), "closed before an answer came")],
)
async def test_server_that_does_not_answer_may_have_acted(
    query: tuple[tuple[str, str], ...], words: str
) -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        with pytest.raises(TransportError, match=words) as caught:
            await transport.send(Request("POST", "/hang", query, b"{}", timeout=0.1))
    assert caught.value.sent


async def test_stream_that_does_not_begin_is_given_up() -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        with pytest.raises(TransportError, match="no answer in time"):
            await transport.open(Request("GET", "/hang", timeout=0.1))


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_streams_come_line_by_line_however_long(size: int) -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        stream = await transport.open(Request("GET", "/watch", (("size", str(size)),)))
        assert stream.status == 200
        assert await stream.readline() == b'{"n":1}'
        assert len(await stream.readline()) == size + 8
        assert await stream.readline() == b""
        await stream.close()


async def read_all(stream: HttpStream) -> None:
    while await stream.readline():
        pass


async def test_stream_that_breaks_in_the_middle_says_so() -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        stream = await transport.open(Request("GET", "/watch", (("tear", ""),)))
        with pytest.raises(TransportError, match="the stream broke"):
            await read_all(stream)
        await stream.close()


async def test_refused_stream_gives_its_status() -> None:
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        server.token = "x"
        stream = await transport.open(Request("GET", "/api/v1/pods", (("watch", "true"),)))
        assert stream.status == 401
        assert json.loads(await stream.read())["code"] == 401
        await stream.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_renewed_token_is_taken_up_when_the_old_one_is_refused(
    *, stream: bool, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    credentials = FileCredentials(CredentialFiles(token=str(file)), SystemClock())
    async with serving() as server, talking(ClusterConfig(server.url, credentials)) as transport:
        server.token = "old"
        assert (await transport.send(Request("GET", "/x"))).ok
        server.token = "new"
        file.write_text("new\n")
        if stream:
            assert (await transport.open(Request("GET", "/x"))).status == 200
        else:
            assert (await transport.send(Request("GET", "/x"))).ok
        assert len(server.asked) == 3


async def test_refused_token_is_tried_once_where_there_is_no_other() -> None:
    credentials = StaticCredentials(Identity((bearer_header("wrong"),)))
    async with serving() as server, talking(ClusterConfig(server.url, credentials)) as transport:
        server.token = "right"
        assert (await transport.send(Request("GET", "/x"))).status == 401
        assert len(server.asked) == 1


async def test_renewed_certificate_is_shown_on_new_connections(
    context: ssl.SSLContext, authority: Authority, tmp_path: Path
) -> None:
    files = authority.issue("ada").write(tmp_path, "client")
    credentials = FileCredentials(
        CredentialFiles(certificate=str(files[0]), key=str(files[1])), SystemClock()
    )
    async with serving(context) as server:
        access = ClusterConfig(server.url, credentials, ca=authority.certificate)
        async with talking(access) as transport:
            await transport.send(Request("GET", "/x"))
            authority.issue("bob").write(tmp_path, "client")
            credentials.reject()
            await transport.send(Request("GET", "/x"))
        assert [asked["user"] for asked in server.asked] == ["ada", "bob"]


@asynccontextmanager
async def proxying(refuse: bool = False) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that understands CONNECT."""
    asked: list[str] = []
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
        asked.append(first)
        writers.append(writer)
        if refuse:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, port = first.split()[1].split(":")
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        writers.append(upstream_writer)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, upstream_writer), pump(upstream_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}", asked
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def test_proxy_is_used(context: ssl.SSLContext, authority: Authority) -> None:
    async with serving(context) as server, proxying() as (proxy, asked):
        access = ClusterConfig(server.url, NO_CREDENTIALS, ca=authority.certificate, proxy=proxy)
        async with talking(access) as transport:
            assert (await transport.send(Request("GET", "/x"))).ok
        assert asked == [f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1"]


async def test_proxy_that_refuses_is_named(context: ssl.SSLContext) -> None:
    async with (
        serving(context) as server,
        proxying(refuse=True) as (proxy, _),
        talking(ClusterConfig(server.url, NO_CREDENTIALS, proxy=proxy)) as transport,
    ):
        with pytest.raises(TransportError, match="the proxy refused: 403") as caught:
            await transport.send(Request("POST", "/x", body=b"{}"))
    assert not caught.value.sent


# --- Servers that mean no good ------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def test_interim_answers_before_one_in_chunks_are_passed_over() -> None:
    answer = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )
    async with (
        raw_server(answer) as (url, asked),
        talking(ClusterConfig(url, NO_CREDENTIALS)) as transport,
    ):
        for _ in range(2):
            assert (await transport.send(Request("GET", "/livez"))).body == b"ok"
        assert asked == [0, 0]


@pytest.mark.parametrize(
    "answer", [OK.replace(b"\r\n\r\n", b"\r\nConnection: Close\r\n\r\n"), OK + b"more", OK + OK]
)
async def test_a_connection_with_extra_bytes_or_connection_close_is_not_reused(
    answer: bytes,
) -> None:
    async with (
        raw_server(answer) as (url, asked),
        talking(ClusterConfig(url, NO_CREDENTIALS)) as transport,
    ):
        for _ in range(2):
            assert (await transport.send(Request("GET", "/x"))).body == b"{}"
        assert asked == [0, 1]


@pytest.mark.parametrize(
    ("answer", "then", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Long: x\r\n" * 1000, "head of the response is too long"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "head of the response is too long"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, "the response is longer than 1 MiB"),
    ],
)
async def test_an_answer_without_an_end_is_given_up(
    answer: bytes, then: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everynode.kube.http.http1.MAX_BODY_BYTES", 1 << 20)
    async with (
        raw_server(answer, then=then) as (url, _),
        talking(ClusterConfig(url, NO_CREDENTIALS)) as transport,
    ):
        with pytest.raises(TransportError, match=words) as caught:
            await transport.send(Request("GET", "/x"))
        assert caught.value.sent


async def test_half_of_an_answer_is_not_taken_for_the_whole_when_time_is_up() -> None:
    async with (
        raw_server(b"HTTP/1.1 200 OK\r\n\r\nhalf") as (url, _),
        talking(ClusterConfig(url, NO_CREDENTIALS)) as transport,
    ):
        with pytest.raises(TransportError, match="no answer in time"):
            await transport.send(Request("GET", "/x", timeout=0.1))


async def test_a_refused_stream_that_does_not_end_is_given_up() -> None:
    refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nhalf"
    async with (
        raw_server(refused) as (url, _),
        talking(ClusterConfig(url, NO_CREDENTIALS)) as transport,
    ):
        stream = await transport.open(Request("GET", "/x", timeout=0.1))
        with pytest.raises(TransportError, match="no answer in time"):
            async with asyncio.timeout(60):
                await stream.read()
        await stream.close()


async def test_a_server_that_never_shakes_hands_costs_no_more_than_the_request_may() -> None:
    async with raw_server(b"") as (url, _):
        access = ClusterConfig(url.replace("http:", "https:"), NO_CREDENTIALS, insecure=True)
        async with talking(access) as transport, asyncio.timeout(60):
            with pytest.raises(TransportError, match="it took too long to connect") as caught:
                await transport.send(Request("POST", "/x", body=b"{}", timeout=0.1))
    assert not caught.value.sent


async def test_a_request_does_not_wait_for_a_connection_longer_than_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("everynode.kube.http.transport.MAX_CONNECTIONS", 1)
    async with serving() as server, talking(ClusterConfig(server.url, NO_CREDENTIALS)) as transport:
        stream = await transport.open(Request("GET", "/watch"))
        async with asyncio.timeout(60):
            with pytest.raises(TransportError, match="it took too long to connect") as caught:
                await transport.send(Request("POST", "/x", body=b"{}", timeout=0.1))
        await stream.close()
        assert (await transport.send(Request("GET", "/x"))).ok
    assert not caught.value.sent


def test_the_expiry_of_a_certificate_is_read() -> None:
    assert certificate_expiry(Authority().issue("ada").certificate) == END.timestamp()


def test_data_that_is_no_certificate_has_no_expiry() -> None:
    assert certificate_expiry(b"nonsense") is None
