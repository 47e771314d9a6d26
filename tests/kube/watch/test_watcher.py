"""The watcher against a scripted server and a clock that the test moves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from everynode.api.objects import Node
from everynode.kube.requests import Response
from everynode.kube.resources import NODES, Resource
from everynode.kube.transport import TransportError
from everynode.kube.watch.cache import NONE_UNREADABLE, Cache
from everynode.kube.watch.watcher import (
    IDLE_LIMIT,
    INITIAL_IDLE_LIMIT,
    REFUSAL_SECONDS,
    Watcher,
    split_event,
)
from tests.support.poisoned_objects import POISONED, poisoned
from tests.support.scripted_server import (
    ManualClock,
    ScriptedStream,
    ScriptedTransport,
    bookmark,
    event,
    failure,
    give_way,
    node,
    page,
    status,
)


class Notebook:
    """Records the calls of the watcher, as a consumer and as an observer."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.troubles: list[str] = []
        self.restarts: list[str] = []

    def replace(
        self, objects: Iterable[Node], version: str, unread: Mapping[str, str] = NONE_UNREADABLE
    ) -> None:
        self.told.append(f"replace {' '.join(item.name for item in objects)} @{version}")
        if unread:
            self.told.append(f"unread {dict(unread)}")

    def upsert(self, item: Node) -> None:
        self.told.append(f"upsert {item.name} @{item.metadata.resource_version}")

    def delete(self, item: Node) -> None:
        self.told.append(f"delete {item.name} @{item.metadata.resource_version}")

    def bookmark(self, version: str) -> None:
        self.told.append(f"bookmark @{version}")

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        self.troubles.append(message)

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        self.restarts.append(reason)

    def object_left_out(self, resource: Resource, message: str) -> None:
        self.troubles.append(message)


class World:
    def __init__(
        self, transport: ScriptedTransport, keep: Callable[[Node], bool] | None = None
    ) -> None:
        self.clock = ManualClock()
        self.notebook = Notebook()
        self.transport = transport
        self.watcher = Watcher(
            transport,
            self.clock,
            resource=NODES,
            decode=msgspec.json.Decoder(Node).decode,
            consumer=self.notebook,
            keep=keep,
            observer=self.notebook,
        )

    def query(self, number: int) -> dict[str, str]:
        return dict(self.transport.requests[number].query)


@asynccontextmanager
async def watching(
    *script: Response | TransportError | ScriptedStream, keep: Callable[[Node], bool] | None = None
) -> AsyncIterator[World]:
    world = World(ScriptedTransport(*script), keep)
    running = asyncio.ensure_future(world.watcher.run())
    await world.clock.quiet()
    yield world
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def initial(version: int, *names: str) -> ScriptedStream:
    events = [event("ADDED", node(name, version)) for name in names]
    return ScriptedStream(*events, bookmark(version, initial_end=True))


async def test_watch_list_hands_over_everything_at_once_and_then_every_change() -> None:
    stream = initial(7, "a", "b")
    async with watching(stream) as world:
        assert world.query(0)["sendInitialEvents"] == "true"
        assert world.query(0)["resourceVersionMatch"] == "NotOlderThan"
        assert "resourceVersion" not in world.query(0)
        stream.say(event("MODIFIED", node("a", 8)))
        stream.say(event("DELETED", node("b", 9)))
        stream.say(bookmark(12))
        await world.clock.quiet()
        assert world.notebook.told == [
            "replace a b @7",
            "upsert a @8",
            "delete b @9",
            "bookmark @12",
        ]
        assert world.watcher.synced
        assert world.notebook.troubles == []


async def test_of_a_list_only_what_is_to_be_kept_is_held_and_every_change_is_told() -> None:
    stream = initial(7, "a", "foreign")
    async with watching(stream, keep=lambda item: item.name != "foreign") as world:
        stream.say(event("MODIFIED", node("foreign", 8)))
        await world.clock.quiet()
        assert world.notebook.told == ["replace a @7", "upsert foreign @8"]


async def test_nothing_is_handed_over_before_the_initial_events_are_complete() -> None:
    stream = ScriptedStream(event("ADDED", node("a", 3)), bookmark(4))
    async with watching(stream) as world:
        assert world.notebook.told == []
        assert not world.watcher.synced


async def test_server_without_watch_list_is_listed_page_by_page_and_then_watched() -> None:
    stream = ScriptedStream(event("ADDED", node("c", 11)))
    async with watching(
        failure(422, "Invalid", "sendInitialEvents is forbidden"),
        page(10, node("a", 1), token="next"),
        page(10, node("b", 2)),
        stream,
    ) as world:
        assert world.query(1) == {"limit": "500"}
        assert world.query(2) == {"limit": "500", "continue": "next"}
        assert world.query(3)["resourceVersion"] == "10"
        assert world.notebook.told == ["replace a b @10", "upsert c @11"]
        assert world.notebook.troubles == []


async def test_an_expired_page_starts_the_list_over_without_what_was_gathered() -> None:
    async with watching(
        failure(422, "Invalid"),
        page(10, node("a", 1), token="next"),
        failure(410, "Expired"),
        page(20, node("b", 12)),
    ) as world:
        assert world.notebook.told == ["replace b @20"]


async def test_a_watch_that_ends_goes_on_from_the_last_version_at_once() -> None:
    first, second = initial(7, "a"), ScriptedStream()
    first.say(bookmark(30))
    async with watching(first, second) as world:
        await world.clock.advance(5)
        first.end()
        await world.clock.quiet()
        assert world.query(1)["resourceVersion"] == "30"
        assert 300 <= int(world.query(1)["timeoutSeconds"]) <= 600
        assert first.closed
        assert world.notebook.restarts == []


async def test_a_broken_watch_goes_on_after_a_pause_and_says_so_once() -> None:
    first, last = initial(7, "a"), ScriptedStream(bookmark(9))
    refused = TransportError("connection refused", sent=False)
    async with watching(first, refused, refused, last) as world:
        first.tear()
        await world.clock.quiet()
        assert len(world.transport.requests) == 1
        await world.clock.advance(10)
        assert world.query(3)["resourceVersion"] == "7"
        assert world.notebook.restarts == ["broken", "broken", "broken"]
        assert world.notebook.troubles == ["cannot reach the server: connection refused", ""]


async def test_a_version_that_is_too_old_brings_a_new_list() -> None:
    gone = event("ERROR", status(410, "Expired", "too old resource version: 7 (90)"))
    first, second = initial(7, "a", "b"), initial(95, "b")
    async with watching(first, second) as world:
        first.say(gone)
        await world.clock.quiet()
        assert world.notebook.told == ["replace a b @7", "replace b @95"]
        assert world.notebook.restarts == ["gone"]


async def test_a_silent_watch_is_given_up_and_resumed() -> None:
    first, second = initial(7, "a"), ScriptedStream()
    async with watching(first, second) as world:
        await world.clock.advance(IDLE_LIMIT - 1)
        first.say(bookmark(8))
        await world.clock.advance(IDLE_LIMIT - 1)
        assert len(world.transport.requests) == 1
        await world.clock.advance(2)
        assert world.query(1)["resourceVersion"] == "8"
        assert first.closed
        assert world.notebook.restarts == ["silent"]


async def test_a_server_that_ignores_watch_list_is_listed_instead() -> None:
    stream = ScriptedStream(event("ADDED", node("a", 3)))
    async with watching(stream, page(10, node("a", 3))) as world:
        await world.clock.advance(INITIAL_IDLE_LIMIT + 1)
        assert world.notebook.told == ["replace a @10"]


async def test_half_an_event_breaks_the_stream_and_loses_nothing() -> None:
    first = initial(7, "a")
    second = ScriptedStream(event("MODIFIED", node("a", 8)))
    async with watching(first, second) as world:
        first.say(b'{"type":"MODIFIED","object":{"metadata":{"na')
        await world.clock.advance(1)
        assert world.query(1)["resourceVersion"] == "7"
        assert world.notebook.told == ["replace a @7", "upsert a @8"]


async def test_a_missing_permission_is_named_and_tried_again() -> None:
    forbidden = failure(
        403,
        "Forbidden",
        'nodes is forbidden: User "x" cannot watch resource "nodes" in API group ""',
        kind="nodes",
    )
    async with watching(forbidden, forbidden, initial(7, "a")) as world:
        await world.clock.advance(10)
        assert world.notebook.troubles[0].startswith("cannot watch nodes: nodes is forbidden")
        assert world.notebook.troubles[1:] == [""]
        assert world.notebook.told == ["replace a @7"]


async def test_a_kind_that_is_not_served_is_reported_and_found_when_it_appears() -> None:
    missing = Response(404, b"404 page not found\n")
    async with watching(missing, initial(7, "a")) as world:
        await asyncio.wait_for(world.watcher.settled(), 60)
        assert (world.watcher.synced, world.watcher.missing) == (False, True)
        await world.clock.advance(1)
        assert world.notebook.told == ["replace a @7"]
        assert (world.watcher.synced, world.watcher.missing) == (True, False)


async def test_a_kind_that_is_taken_away_leaves_nothing_behind() -> None:
    first, missing = initial(7, "a"), Response(404, b"404 page not found\n")
    async with watching(first, *[missing] * 20) as world:
        first.tear()
        await world.clock.advance(1)
        assert world.notebook.told == ["replace a @7"]
        await world.clock.advance(30)
        assert world.notebook.told == ["replace a @7", "replace  @"]
        assert (world.watcher.synced, world.watcher.missing) == (False, True)


async def test_refresh_ends_when_the_kind_proves_to_be_taken_away() -> None:
    missing = Response(404, b"404 page not found\n")
    async with watching(initial(7, "a"), *[missing] * 20) as world:
        refreshing = asyncio.ensure_future(world.watcher.refresh())
        await world.clock.advance(1)
        assert not refreshing.done()
        await world.clock.advance(30)
        assert refreshing.done()
        assert world.notebook.told[-1] == "replace  @"


async def test_the_server_s_own_pause_is_kept() -> None:
    slow = Response(429, b"", {"retry-after": "17"})
    async with watching(slow, initial(7, "a")) as world:
        await world.clock.advance(16)
        assert world.notebook.told == []
        await world.clock.advance(2)
        assert world.notebook.told == ["replace a @7"]


async def test_refresh_returns_only_after_a_list_that_began_later() -> None:
    first, second = initial(7, "a"), ScriptedStream(event("ADDED", node("a", 7)))
    async with watching(first, second) as world:
        refreshing = asyncio.ensure_future(world.watcher.refresh())
        await world.clock.quiet()
        assert not refreshing.done()
        assert world.watcher.synced  # the copy is whole, if old
        assert first.closed
        second.say(bookmark(9, initial_end=True))
        await world.clock.quiet()
        assert refreshing.done()
        assert world.notebook.told == ["replace a @7", "replace a @9"]


async def test_an_object_that_cannot_be_read_does_not_stop_the_others() -> None:
    poison = node("bad", 8)
    poison["spec"] = {"taints": "none"}
    stream = initial(7, "a")
    async with watching(stream) as world:
        stream.say(event("ADDED", poison))
        stream.say(event("ADDED", node("c", 9)))
        await world.clock.quiet()
        assert world.notebook.told == ["replace a @7", "upsert c @9"]
        assert world.notebook.troubles[0].startswith("Node bad: Expected `array`")


async def test_an_object_that_cannot_be_read_is_not_kept_beyond_its_deletion() -> None:
    poison = node("a", 8)
    poison["spec"] = {"taints": "none"}
    stream = initial(7, "a", "b")
    async with watching(stream, initial(9, "b")) as world:
        stream.say(event("DELETED", poison))
        await world.clock.quiet()
        assert world.notebook.told == ["replace a b @7", "replace b @9"]


async def test_an_object_nested_deeper_than_python_goes_hides_no_other() -> None:
    deep = page(10, node("a", 1), {**node("deep", 2), "odd": "DEEP"}, node("b", 3))
    nested = b"[" * 5000 + b"]" * 5000
    body = deep.body.replace(b'"DEEP"', nested)
    line = b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"odd":%s}}' % nested
    stream = ScriptedStream()
    async with watching(failure(422, "Invalid"), Response(200, body), stream) as world:
        told = ["replace a b @10", "unread {'deep': 'uid-deep'}"]
        assert world.notebook.told == told
        stream.say(line)
        stream.say(event("ADDED", node("c", 11)))
        await world.clock.quiet()
        assert world.notebook.told == [*told, "upsert c @11"]
        assert len([each for each in world.notebook.troubles if "recursion" in each]) == 2


def _whole(name: str, version: int) -> bytes:
    return json.dumps(node(name, version)).encode()


@pytest.mark.parametrize("what", POISONED)
async def test_a_poisoned_object_of_a_list_hides_no_other(what: str) -> None:
    items = b",".join([_whole("a", 1), poisoned(what), _whole("b", 3)])
    body = b'{"metadata":{"resourceVersion":"10"},"items":[%s]}' % items
    async with watching(failure(422, "Invalid"), Response(200, body), ScriptedStream()) as world:
        assert world.notebook.told[0] == "replace a b @10"
        assert world.watcher.synced
        assert world.notebook.troubles[0].startswith("Node ")
        assert ("Node bad:" in world.notebook.troubles[0]) is POISONED[what].named


@pytest.mark.parametrize("order", ["type first", "object first"])
@pytest.mark.parametrize("what", POISONED)
async def test_a_poisoned_object_of_a_watch_does_not_end_it(what: str, order: str) -> None:
    stream = initial(7, "a")
    line = (
        b'{"type":"MODIFIED","object":%s}'
        if order == "type first"
        else (b'{"object":%s,"type":"MODIFIED"}')
    )
    async with watching(stream) as world:
        stream.say(line % poisoned(what))
        stream.say(event("ADDED", node("c", 9)))
        await world.clock.advance(30)
        assert world.notebook.told == ["replace a @7", "upsert c @9"]
        assert world.notebook.restarts == []
        assert len(world.notebook.troubles) == 1


@pytest.mark.parametrize("what", POISONED)
async def test_a_poisoned_object_of_a_watch_list_does_not_end_it(what: str) -> None:
    stream = ScriptedStream(event("ADDED", node("a", 7)))
    stream.say(b'{"type":"ADDED","object":%s}' % poisoned(what))
    stream.say(bookmark(7, initial_end=True))
    async with watching(stream) as world:
        assert world.notebook.told[0] == "replace a @7"
        assert world.watcher.synced


@pytest.mark.parametrize("kind", ["ERROR", "BOOKMARK"])
async def test_an_event_of_the_server_s_own_that_cannot_be_read_is_survived(kind: str) -> None:
    first, second = initial(7, "a"), ScriptedStream(bookmark(9))
    nested = b"[" * 5000 + b"]" * 5000
    async with watching(first, second, initial(9, "a")) as world:
        first.say(
            b'{"type":"%s","object":{"metadata":{"resourceVersion":%s},"message":"\xff"}}'
            % (kind.encode(), nested)
        )
        await world.clock.advance(30)
        assert len(world.transport.requests) > 1


async def test_what_becomes_unreadable_stays_as_it_was_known() -> None:
    transport = ScriptedTransport(initial(7, "a", "bad"))
    clock, cache = ManualClock(), Cache[Node]()
    decode = msgspec.json.Decoder(Node).decode
    watcher = Watcher(transport, clock, resource=NODES, decode=decode, consumer=cache)
    running = asyncio.ensure_future(watcher.run())
    await clock.quiet()
    again = ScriptedStream(event("ADDED", node("a", 7)))
    again.say(b'{"type":"ADDED","object":%s}' % poisoned("half of a surrogate pair"))
    again.say(bookmark(9, initial_end=True))
    transport.script.append(again)
    refreshing = asyncio.ensure_future(watcher.refresh())
    await clock.quiet()
    assert refreshing.done()
    assert list(cache.all()) == ["a", "bad"]
    running.cancel()


async def test_a_refusal_whose_body_stalls_is_taken_as_it_is_and_asked_again() -> None:
    class Stalling(ScriptedStream):
        async def read(self) -> bytes:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    stalling = Stalling(status=503)
    async with watching(stalling, page(8, node("a", 8)), ScriptedStream()) as world:
        await world.clock.advance(REFUSAL_SECONDS - 1)
        assert len(world.transport.requests) == 1
        await world.clock.advance(10)
        assert world.notebook.told == ["replace a @8"]
        assert stalling.closed


async def test_a_list_that_makes_no_sense_is_asked_for_again() -> None:
    page_of_a_proxy = Response(200, b"<html>please log in</html>")
    refused = failure(422, "Invalid")
    async with watching(refused, page_of_a_proxy, page(10, node("a", 1))) as world:
        assert world.notebook.told == []
        await world.clock.advance(1)
        assert world.notebook.told == ["replace a @10"]


async def test_others_get_a_turn_during_a_flood_of_events() -> None:
    flood = [event("ADDED", node(f"n{number}", 10 + number)) for number in range(200)]
    world = World(ScriptedTransport(ScriptedStream(bookmark(7, initial_end=True), *flood)))
    running = asyncio.ensure_future(world.watcher.run())
    seen = {0}
    while len(world.notebook.told) < 201:
        await give_way()
        seen.add(len(world.notebook.told))
    running.cancel()
    await asyncio.wait([running])
    assert len(seen) > 2


async def test_a_watch_without_events_clears_an_earlier_error() -> None:
    refused = TransportError("connection refused", sent=False)
    first = initial(7, "a")
    async with watching(first, refused, refused, ScriptedStream()) as world:
        first.tear()
        await world.clock.advance(10)
        assert world.watcher.trouble == ""


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"a":{}}}',
        b'{ "type": "ADDED", "object": {"a":{}} }',
        b'{"object":{"a":{}},"type":"ADDED"}',
    ],
)
def test_events_are_split_however_they_are_written(line: bytes) -> None:
    assert split_event(line) == ("ADDED", b'{"a":{}}')
