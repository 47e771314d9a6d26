from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from everynode.api.objects import Node
from everynode.kube import verbs
from everynode.kube.client import WRITE_SECONDS, Client, NotLeader
from everynode.kube.errors import Conflict, Forbidden, Gone, Unavailable, UnknownOutcome
from everynode.kube.requests import Request, Response
from everynode.kube.resources import NODES, PODS
from everynode.kube.transport import TransportError
from tests.support.poisoned_objects import POISONED, poisoned
from tests.support.scripted_server import ManualClock, ScriptedTransport, failure, node, page

READ = verbs.get(NODES, "a")
WRITE = verbs.create(PODS, {}, namespace="n")
OK = Response(200, b'{"ok":true}')
LOGIN = Response(200, b"<html>please log in</html>")
LOST = TransportError("connection reset", sent=True)
DOWN = TransportError("connection refused", sent=False)


def decode(body: bytes) -> Any:
    return json.loads(body)


def name_of(body: bytes) -> str:
    return str(json.loads(body)["metadata"]["name"])


async def test_a_read_is_repeated_while_the_server_cannot_serve() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(DOWN, failure(503), Response(429, b"", {"retry-after": "3"}), OK)
    reading = asyncio.ensure_future(Client(transport, clock).read(READ, decode))
    await clock.advance(1)
    assert not reading.done()
    await clock.advance(3)
    assert reading.result() == {"ok": True}


async def test_a_read_gives_up_after_a_few_attempts() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(*[DOWN] * 9)
    reading = asyncio.ensure_future(Client(transport, clock).read(READ, decode))
    await clock.advance(60)
    with pytest.raises(Unavailable, match="connection refused"):
        reading.result()
    assert len(transport.requests) == 4


@pytest.mark.parametrize("answer", [failure(403), failure(409), failure(410)])
async def test_a_refused_read_is_not_repeated(answer: Response) -> None:
    transport = ScriptedTransport(answer, OK)
    with pytest.raises((Forbidden, Conflict, Gone)):
        await Client(transport, ManualClock()).read(READ, decode)
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [(LOST, UnknownOutcome), (DOWN, Unavailable), (failure(504), UnknownOutcome)],
)
async def test_a_write_is_never_repeated(
    answer: Response | TransportError, meaning: type[Exception]
) -> None:
    transport = ScriptedTransport(answer, OK)
    with pytest.raises(meaning):
        await Client(transport, ManualClock()).write(WRITE, decode)
    assert len(transport.requests) == 1


async def test_a_write_carries_the_limit_it_was_permitted() -> None:
    transport = ScriptedTransport(OK, OK)
    clock = ManualClock()
    await Client(transport, clock).write(WRITE, decode)
    await Client(transport, clock, write_budget=lambda: 4.5).write(WRITE, decode)
    limits = [dict(request.query)["timeout"] for request in transport.requests]
    assert limits == [f"{WRITE_SECONDS:.0f}s", "4s"]


async def test_a_write_that_is_not_permitted_is_not_sent() -> None:
    transport = ScriptedTransport(OK)
    client = Client(transport, ManualClock(), write_budget=lambda: 0.0)
    with pytest.raises(NotLeader, match="cannot create pods in namespace n: not the leader"):
        await client.write(WRITE, decode)
    assert transport.requests == []


async def test_every_write_that_was_sent_is_measured() -> None:
    seen: list[tuple[str, str]] = []
    transport = ScriptedTransport(OK, failure(409, "Conflict"), LOST)
    client = Client(
        transport,
        ManualClock(),
        meter=lambda asked, result: seen.append((str(asked), result)),
    )
    await client.write(WRITE, decode)
    with pytest.raises(Conflict):
        await client.write(WRITE, decode)
    with pytest.raises(UnknownOutcome):
        await client.write(WRITE, decode)
    what = "create pods in namespace n"
    assert seen == [(what, "ok"), (what, "Conflict"), (what, "UnknownOutcome")]


class Slow:
    """A server that answers when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Response]] = []

    async def send(self, request: Request) -> Response:
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return await future

    async def open(self, request: Request) -> Any:
        raise AssertionError("no streams here")

    async def close(self) -> None:
        pass


async def test_no_more_writes_are_under_way_than_allowed() -> None:
    clock, server = ManualClock(), Slow()
    client = Client(server, clock, writes_at_once=2)
    writes = [asyncio.ensure_future(client.write(WRITE, decode)) for _ in range(3)]
    await clock.quiet()
    assert len(server.waiting) == 2
    server.waiting[0].set_result(OK)
    await clock.quiet()
    assert len(server.waiting) == 3
    for future in server.waiting[1:]:
        future.set_result(OK)
    await asyncio.gather(*writes)


async def test_permission_is_asked_when_the_write_s_turn_has_come() -> None:
    clock, server = ManualClock(), Slow()
    permitted = [10.0, 0.0]
    client = Client(server, clock, writes_at_once=1, write_budget=lambda: permitted.pop(0))
    first = asyncio.ensure_future(client.write(WRITE, decode))
    second = asyncio.ensure_future(client.write(WRITE, decode))
    await clock.quiet()
    assert permitted == [0.0]
    server.waiting[0].set_result(OK)
    await first
    with pytest.raises(NotLeader):
        await second


async def test_settle_waits_for_writes_under_way() -> None:
    clock, server = ManualClock(), Slow()
    client = Client(server, clock)
    writing = asyncio.ensure_future(client.write(WRITE, decode))
    settling = asyncio.ensure_future(client.settle())
    await clock.quiet()
    assert not settling.done()
    server.waiting[0].set_result(OK)
    await asyncio.gather(writing, settling)


async def test_settle_waits_until_a_lost_write_can_no_longer_happen() -> None:
    clock = ManualClock()
    client = Client(ScriptedTransport(LOST), clock, write_budget=lambda: 8.0)
    with pytest.raises(UnknownOutcome):
        await client.write(WRITE, decode)
    settling = asyncio.ensure_future(client.settle())
    await clock.advance(9)
    assert not settling.done()
    await clock.advance(2)
    assert settling.done()


async def test_a_collection_is_read_page_by_page() -> None:
    transport = ScriptedTransport(page(9, node("a", 1), token="t"), page(9, node("b", 2)))
    client = Client(transport, ManualClock())
    assert await client.read_all(NODES, name_of) == ["a", "b"]
    assert dict(transport.requests[1].query)["continue"] == "t"


async def test_an_object_that_cannot_be_read_is_left_out() -> None:
    transport = ScriptedTransport(page(9, node("a", 1), {"metadata": 7}, node("b", 2)))

    def read(body: bytes) -> str:
        found = json.loads(body)["metadata"]
        if not isinstance(found, dict):
            raise ValueError("no metadata")
        return str(found["name"])

    assert await Client(transport, ManualClock()).read_all(NODES, read) == ["a", "b"]


@pytest.mark.parametrize("what", POISONED)
async def test_a_poisoned_object_hides_no_other_and_is_named(what: str) -> None:
    parts = [json.dumps(node("a", 1)).encode(), poisoned(what), json.dumps(node("b", 2)).encode()]
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%s]}' % b",".join(parts)
    told: list[str] = []
    client = Client(
        ScriptedTransport(Response(200, body)),
        ManualClock(),
        left_out=lambda resource, message: told.append(f"{resource.plural}: {message}"),
    )
    found = await client.read_all(NODES, msgspec.json.Decoder(Node).decode)
    assert [each.name for each in found] == ["a", "b"]
    name = "bad" if POISONED[what].named else "without a readable name"
    assert [each.startswith(f"nodes: Node {name}: ") for each in told] == [True]


async def test_half_a_list_is_asked_for_again() -> None:
    clock, whole = ManualClock(), page(9, node("a", 1), node("b", 2))
    half = Response(200, whole.body[: len(whole.body) // 2])
    reading = Client(ScriptedTransport(half, whole), clock).read_all(NODES, name_of)
    answer = asyncio.ensure_future(reading)
    await clock.advance(60)
    assert answer.result() == ["a", "b"]


async def test_an_answer_that_makes_no_sense_is_none() -> None:
    clock = ManualClock()
    reading = Client(ScriptedTransport(*[LOGIN] * 3, OK), clock).read(READ, decode)
    answer = asyncio.ensure_future(reading)
    await clock.advance(60)
    assert answer.result() == {"ok": True}
    with pytest.raises(UnknownOutcome, match="cannot be decoded"):
        await Client(ScriptedTransport(LOGIN), clock).write(WRITE, decode)


async def test_a_list_without_items_is_empty() -> None:
    body = b'{"kind":"NodeList","metadata":{"resourceVersion":"3"},"items":null}'
    client = Client(ScriptedTransport(Response(200, body)), ManualClock())
    assert await client.read_all(NODES, name_of) == []
