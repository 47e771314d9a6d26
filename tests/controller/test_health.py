from __future__ import annotations

import asyncio

import aiohttp
import pytest

from everynode.api.objects import Node
from everynode.controller.health import (
    MAX_CONNECTIONS,
    MAX_INACTIVITY,
    MAX_SILENCE,
    AddressError,
    Health,
    is_fresh,
    is_moving,
    parse_address,
    serve,
)
from everynode.controller.metrics import Metrics
from everynode.kube.requests import Response
from everynode.kube.resources import NODES
from everynode.kube.transport import TransportError
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher
from tests.support.scripted_server import ManualClock, ScriptedStream, ScriptedTransport, bookmark

DOWN = TransportError("connection refused", sent=False)


def watcher(clock: ManualClock, transport: ScriptedTransport) -> Watcher[Node]:
    return Watcher(
        transport, clock, resource=NODES, decode=Decoder(Node).one, consumer=Cache[Node]()
    )


async def states(
    clock: ManualClock, transport: ScriptedTransport, *pauses: float
) -> list[tuple[str, str]]:
    """What the checks say after each pause while a watch runs."""
    watch = watcher(clock, transport)
    task = asyncio.ensure_future(watch.run())
    found = []
    for pause in pauses:
        await clock.advance(pause)
        found.append((is_moving(watch, clock)(), is_fresh(watch, clock)()))
    task.cancel()
    await asyncio.wait([task])
    return found


async def test_a_watch_is_ready_once_it_has_listed_and_while_it_hears() -> None:
    stream = ScriptedStream()
    clock = ManualClock()
    transport = ScriptedTransport(stream)
    watch = watcher(clock, transport)
    task = asyncio.ensure_future(watch.run())
    await clock.quiet()
    assert is_fresh(watch, clock)() == "not listed yet"
    stream.say(bookmark(7, initial_end=True))
    await clock.quiet()
    for version in range(8, 20):
        await clock.advance(60)
        assert is_fresh(watch, clock)() == ""
        stream.say(bookmark(version))
    task.cancel()
    await asyncio.wait([task])


async def test_a_server_that_is_gone_makes_us_unready_but_is_no_reason_to_restart() -> None:
    first = ScriptedStream(bookmark(7, initial_end=True))
    first.tear()
    transport = ScriptedTransport(first, *[DOWN] * 1000)
    [early, late] = await states(ManualClock(), transport, 10, MAX_SILENCE)
    assert early == ("", "")
    assert late[0] == ""
    assert late[1].startswith("nothing was heard for 130 seconds: cannot reach the server")


async def test_a_watch_that_is_stuck_is_a_reason_to_restart() -> None:
    [fine, stuck] = await states(ManualClock(), ScriptedTransport(), MAX_INACTIVITY - 1, 2)
    assert fine[0] == ""
    assert stuck[0] == f"nothing was asked or heard for {MAX_INACTIVITY + 1:.0f} seconds"


async def test_a_kind_that_is_not_installed_does_not_make_us_unready() -> None:
    transport = ScriptedTransport(*[Response(404, b"404 page not found")] * 100)
    [state] = await states(ManualClock(), transport, 60)
    assert state == ("", "")


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


async def test_a_kind_watched_twice_is_checked_twice() -> None:
    health, clock = Health(), ManualClock()
    for _ in range(2):
        health.add_watch(watcher(clock, ScriptedTransport()), clock)
    assert list(health.ready()) == ["watch-nodes", "watch-nodes-2"]


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
