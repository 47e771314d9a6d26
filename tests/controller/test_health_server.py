from __future__ import annotations

import asyncio

import aiohttp
import pytest

from everynode.controller.health import Health
from everynode.controller.health_server import (
    MAX_CONNECTIONS,
    MAX_REQUEST_BYTES,
    AddressError,
    parse_address,
    serve,
)
from everynode.controller.metrics import Metrics
from tests.support.scripted_server import ManualClock


async def test_answers_over_http() -> None:
    health, problems = Health(), {"a": "", "b": ""}
    health.add_live("loop", lambda: problems["a"])
    health.add_ready("cache", lambda: problems["b"])
    metrics = Metrics(ManualClock())
    async with (
        serve(("127.0.0.1", 0), health=health, metrics=metrics) as (host, port),
        aiohttp.ClientSession(f"http://{host}:{port}") as session,
    ):

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        assert await ask("/livez") == (200, "ok")
        assert await ask("/readyz?verbose") == (200, "[+]cache ok\nreadyz check passed\n")
        problems["b"] = "too old"
        assert (await ask("/livez"))[0] == 200
        assert await ask("/readyz") == (503, "[-]cache failed: too old\nreadyz check failed\n")
        problems["a"], problems["b"] = "stuck", ""
        assert (await ask("/healthz"))[0] == 503
        assert (await ask("/readyz"))[0] == 503
        status, text = await ask("/metrics")
        assert status == 200
        assert "# TYPE everynode_leader gauge" in text
        assert (await ask("/other"))[0] == 404


HALF = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Half: "
WHOLE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


async def answer(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection is closed; a reset is an end as well."""
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", HALF, b"POST /livez HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"])
async def test_a_client_that_sends_half_a_request_is_not_waited_for(sent: bytes) -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None, limit=0.1) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        received = await answer(reader)
        writer.close()
    assert b" 200 " not in received


async def test_a_connection_ends_with_its_answer() -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(WHOLE)
        received = await answer(reader)
        writer.close()
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(b"\r\n\r\nok")


async def test_of_too_many_connections_the_oldest_are_closed_and_the_newest_is_served() -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        halves = []
        for _ in range(MAX_CONNECTIONS + 1):
            halves.append(await asyncio.open_connection(*address))
            halves[-1][1].write(HALF)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(WHOLE)
        received = await answer(reader)
        ended = [await answer(each) for each, _ in halves[:2]]
        for _, each in (*halves, (reader, writer)):
            each.close()
    assert received.startswith(b"HTTP/1.1 200 ")
    assert ended == [b"", b""]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [(b"POST /livez", b"405"), (b"GET /other", b"404"), (b"HEAD /livez", b"200")],
)
async def test_other_methods_and_paths_are_refused(request_line: bytes, status: bytes) -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(request_line + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        received = await answer(reader)
        writer.close()
    assert received.split()[1] == status


async def ask(address: tuple[str, int], *pieces: bytes) -> bytes:
    """What is answered to a request that is sent in these pieces."""
    reader, writer = await asyncio.open_connection(*address)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    received = await answer(reader)
    writer.close()
    return received


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET  HTTP/1.1\r\n\r\n",
        b"GET http://[::bad HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"x" * MAX_REQUEST_BYTES,
        b"POST /livez HTTP/1.1\r\nContent-Length: 999999\r\n\r\n" + b"x" * MAX_REQUEST_BYTES,
    ],
)
async def test_what_is_no_request_is_refused(sent: bytes) -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        received = await ask(address, sent)
    # The answer to a long request can be lost: the connection is reset while data is on its way.
    assert received.startswith(b"HTTP/1.1 400 ") or (len(sent) > MAX_REQUEST_BYTES and not received)


async def test_a_request_may_come_byte_by_byte() -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        received = await ask(address, *[WHOLE[at : at + 1] for at in range(len(WHOLE))])
    assert received.endswith(b"\r\n\r\nok")


async def test_of_two_requests_at_once_the_first_is_answered() -> None:
    async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
        received = await ask(address, WHOLE + b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
    assert received.count(b"HTTP/1.1 ") == 1
    assert received.endswith(b"\r\n\r\nok")


async def test_open_connections_do_not_hold_up_the_end() -> None:
    async with asyncio.timeout(5):
        async with serve(("127.0.0.1", 0), health=Health(), metrics=None) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(HALF)
            await writer.drain()
        assert await answer(reader) == b""
    writer.close()


async def test_an_address_that_is_taken_is_one_clear_line() -> None:
    health = Health()
    async with serve(("127.0.0.1", 0), health=health, metrics=None) as address:
        line = (
            rf"^--here: cannot listen on 127\.0\.0\.1:{address[1]}: Address already in use; choose"
        )
        with pytest.raises(AddressError, match=line):
            await serve(address, health=health, metrics=None, flag="--here").__aenter__()


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        ("127.0.0.1:8081", ("127.0.0.1", 8081)),
        (":8081", ("", 8081)),
        ("8081", ("127.0.0.1", 8081)),
        ("[::1]:8081", ("::1", 8081)),
        ("localhost:0", ("localhost", 0)),
        ("0", None),
        ("off", None),
    ],
)
def test_addresses_as_people_write_them(address: str, parsed: tuple[str, int] | None) -> None:
    assert parse_address(address, flag="--health-address") == parsed


@pytest.mark.parametrize("address", ["localhost", "a:b", "1.2.3.4:70000", "1.2.3.4:-1"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(AddressError, match=f"--health-address {address}: write it as host:port"):
        parse_address(address, flag="--health-address")
