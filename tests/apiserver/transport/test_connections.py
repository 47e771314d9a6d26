"""Client connections: timeouts, malformed requests, and watches that end with them."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everynode.apiserver.server import Server
from everynode.apiserver.transport.connections import ClientTimeouts
from everynode.apiserver.transport.https import MAX_BODY_BYTES
from everynode.clock import SystemClock
from tests.support.api_client import MAPS

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LONG = 3600.0
# Each test shortens the one time that it is about: what ends a connection is then no other.
PATIENT = {
    "handshake_seconds": LONG,
    "header_seconds": LONG,
    "body_seconds": LONG,
    "idle_seconds": LONG,
    "drain_seconds": 0.05,
}


@asynccontextmanager
async def started(**timeouts: float) -> AsyncIterator[Server]:
    server = Server(clock=SystemClock(), timeouts=ClientTimeouts(**{**PATIENT, **timeouts}))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with started() as made:
        yield made


async def connect(server: Server, *, tls: bool = True) -> Wire:
    port = int(server.url.rpartition(":")[2])
    trust = ssl.create_default_context(cadata=server.identity.authority) if tls else None
    return await asyncio.open_connection("127.0.0.1", port, ssl=trust)


def head(server: Server, method: str, target: str, *lines: str, token: str = "") -> bytes:
    sent = token or f"Bearer {server.identity.token}"
    first = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: {sent}", *lines]
    return ("\r\n".join(first) + "\r\n\r\n").encode("latin-1")


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of the next answer."""
    async with asyncio.timeout(60):
        raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in raw[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(raw[0].split()[1]), body


async def ask(server: Server, request: bytes) -> tuple[int, bytes]:
    reader, writer = await connect(server)
    try:
        writer.write(request)
        return await answer(reader)
    finally:
        writer.close()


async def closed(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends the connection without another word."""
    async with asyncio.timeout(60):
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True


async def test_watch_ends_with_the_connection_of_its_client(server: Server) -> None:
    log = server.api.store.collection("configmaps").log
    wires = [await connect(server) for _ in range(3)]
    for reader, writer in wires:
        writer.write(head(server, "GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await reader.readuntil(b"kube-root-ca.crt")
    assert server.api.open_watches == 3
    for _, writer in wires:
        writer.transport.abort()
    async with asyncio.timeout(60):
        while server.api.open_watches or log.waiting:
            # Each answer is a round trip through the loop that hears of the ends.
            await ask(server, head(server, "GET", "/readyz"))
    assert (server.api.open_watches, log.waiting) == (0, 0)


async def test_watch_that_has_ended_is_forgotten(server: Server) -> None:
    reader, writer = await connect(server)
    writer.write(head(server, "GET", f"{MAPS}?watch=1&timeoutSeconds=1"))
    await reader.readuntil(b"\r\n0\r\n\r\n")
    assert server.api.open_watches == 0
    writer.close()


@pytest.mark.parametrize(
    "sent", [b"", b"GET /ver", b"GET /version HTTP/1.1\r\nHost: localhost\r\n"]
)
async def test_head_that_never_ends_is_cut_off(sent: bytes) -> None:
    async with started(header_seconds=0.05) as server:
        reader, writer = await connect(server)
        writer.write(sent)
        assert await closed(reader)
        writer.close()


async def test_second_head_that_never_ends_is_cut_off() -> None:
    async with started(header_seconds=0.3) as server:
        reader, writer = await connect(server)
        writer.write(head(server, "GET", "/version"))
        assert (await answer(reader))[0] == 200
        writer.write(b"GET /version HTTP/1.1\r\nX: ")
        assert await closed(reader)
        writer.close()


async def test_body_that_never_ends_is_answered_and_cut_off() -> None:
    async with started(body_seconds=0.05) as server:
        reader, writer = await connect(server)
        writer.write(head(server, "POST", MAPS, "Content-Length: 100") + b'{"metadata"')
        status, body = await answer(reader)
        assert (status, json.loads(body)["reason"]) == (504, "Timeout")
        assert await closed(reader)
        writer.close()


async def test_handshake_that_never_begins_is_cut_off() -> None:
    async with started(handshake_seconds=0.05) as server:
        reader, writer = await connect(server, tls=False)
        assert await closed(reader)
        writer.close()


async def test_connection_that_is_not_used_is_closed() -> None:
    async with started(idle_seconds=0.05) as server:
        reader, writer = await connect(server)
        writer.write(head(server, "GET", "/version"))
        assert (await answer(reader))[0] == 200
        assert await closed(reader)
        writer.close()


@pytest.mark.parametrize(
    "lines",
    [
        [f"X: {'y' * 100_000}"],
        [f"X-{number}: y" for number in range(1000)],
        ["Content-Length: -1"],
        ["Content-Length: 1, 2"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        [f"Content-Length: {'9' * 400}"],
        ["Transfer-Encoding: odd"],
        ["\x00: x"],
        ["no colon"],
    ],
)
async def test_a_malformed_head_is_refused_without_a_log_line(
    server: Server, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    status, body = await ask(server, head(server, "GET", MAPS, *lines))
    assert 400 <= status < 500, body
    assert caplog.text == ""


async def test_garbage_is_refused_without_a_log_line(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    status, _ = await ask(server, b"\x16\x03\x01 garbage\r\n\r\n")
    assert status == 400
    assert caplog.text == ""


async def test_malformed_chunks_end_the_connection_without_a_log_line(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await connect(server)
    writer.write(head(server, "POST", MAPS, "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n")
    raw = await asyncio.wait_for(reader.read(), 60)
    assert raw == b"" or b" 400 Bad Request" in raw
    writer.close()
    assert caplog.text == ""


@pytest.mark.parametrize("how", ["length", "chunks"])
async def test_body_that_is_too_large_gets_the_words_of_a_real_server(
    server: Server, how: str
) -> None:
    reader, writer = await connect(server)
    if how == "length":
        writer.write(head(server, "POST", MAPS, f"Content-Length: {MAX_BODY_BYTES + 1}"))
    else:
        writer.write(head(server, "POST", MAPS, "Transfer-Encoding: chunked"))
        writer.write(b"%x\r\n" % (MAX_BODY_BYTES + 1) + b"x" * (MAX_BODY_BYTES + 1))
    status, body = await answer(reader)
    assert (status, json.loads(body)) == (
        413,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"Request entity too large: limit is {MAX_BODY_BYTES}",
            "reason": "RequestEntityTooLarge",
            "details": {},
            "code": 413,
        },
    )
    writer.close()


async def test_compressed_bodies_are_not_unpacked(server: Server) -> None:
    bomb = gzip.compress(b" " * (100 << 20))
    lines = ("Content-Encoding: gzip", f"Content-Length: {len(bomb)}")
    status, body = await ask(server, head(server, "POST", MAPS, *lines) + bomb)
    assert (status, json.loads(body)["reason"]) == (400, "BadRequest")


async def test_a_client_that_expects_100_continue_gets_it(server: Server) -> None:
    body = b'{"metadata":{"name":"a"}}'
    lines = ("Expect: 100-continue", f"Content-Length: {len(body)}")
    reader, writer = await connect(server)
    writer.write(head(server, "POST", MAPS, *lines))
    assert await answer(reader) == (100, b"")
    writer.write(body)
    assert (await answer(reader))[0] == 201
    # A client without a valid token is not invited to send its body.
    writer.write(head(server, "POST", MAPS, *lines, token="Bearer wrong"))
    assert (await answer(reader))[0] == 401
    writer.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("Bearer TOKEN", 200),
        ("bearer TOKEN", 200),
        ("BEARER TOKEN", 200),
        ("Bearer TOKEN more", 200),
        ("Bearer  TOKEN", 401),
        ("Bearer", 401),
        ("TOKEN", 401),
        ("Basic TOKEN", 401),
        ("Bearer \xff", 401),
        ("\xff", 401),
    ],
)
async def test_token_is_found_as_a_real_server_finds_it(
    server: Server, sent: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    token = sent.replace("TOKEN", server.identity.token)
    assert (await ask(server, head(server, "GET", MAPS, token=token)))[0] == status
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{MAPS}/%00", 404),
        (f"{MAPS}/%ff", 404),
        (f"{MAPS}/%0a", 404),
        (f"{MAPS}/%zz", 400),
        (f"{MAPS}/%", 400),
        ("/api/v1%2fnamespaces/default%2Fconfigmaps", 200),
        (f"{MAPS}?labelSelector=%ff", 400),
        (f"{MAPS}?limit=%zz", 200),  # a pair that cannot be decoded counts as not sent
        (f"{MAPS}?limit=1&limit=x", 200),  # the first of several counts
        (f"{MAPS}?limit=x&limit=1", 400),
        (f"{MAPS}/{'a' * 60_000}", 404),
        (f"https://localhost{MAPS}", 200),
        ("*", 400),
    ],
)
async def test_addresses_are_decoded_as_a_real_server_does(
    server: Server, target: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    found, body = await ask(server, head(server, "GET", target))
    assert found == status, body
    assert caplog.text == ""


async def test_unforeseen_error_is_one_line_of_log_and_a_status(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(dict[str, str]):
        def get(self, *_: object) -> str:
            raise KeyError("first\nsecond\x1b[2J")

    server.api.state.kinds.path_cache = Odd()
    with caplog.at_level(logging.ERROR):
        for query in ("", "?watch=1"):
            status, body = await ask(server, head(server, "GET", f"{MAPS}%0afake%1b[2J{query}"))
            assert (status, json.loads(body)["reason"]) == (500, "InternalError")
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert record.exc_info is None
        assert record.getMessage().isprintable()


async def test_name_of_the_client_may_be_anything(server: Server) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"x":"y"}}'
    lines = (f"User-Agent: a\xffb{'c' * 500}/1", f"Content-Length: {len(body)}")
    status, made = await ask(server, head(server, "POST", MAPS, *lines) + body)
    assert status == 201
    manager = json.loads(made)["metadata"]["managedFields"][0]["manager"]
    assert manager == "a\ufffdb" + "c" * 123
