from __future__ import annotations

import asyncio

from everynode.api.objects import Node
from everynode.controller.health import (
    MAX_INACTIVITY,
    MAX_SILENCE,
    Health,
    is_fresh,
    is_moving,
)
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
    assert late[1].startswith("no event was received for 130 seconds: cannot reach the server")


async def test_a_watch_that_is_stuck_is_a_reason_to_restart() -> None:
    [fine, stuck] = await states(ManualClock(), ScriptedTransport(), MAX_INACTIVITY - 1, 2)
    assert fine[0] == ""
    assert (
        stuck[0]
        == f"no request was sent and no event received for {MAX_INACTIVITY + 1:.0f} seconds"
    )


async def test_a_kind_that_is_not_installed_does_not_make_us_unready() -> None:
    transport = ScriptedTransport(*[Response(404, b"404 page not found")] * 100)
    [state] = await states(ManualClock(), transport, 60)
    assert state == ("", "")


async def test_a_kind_watched_twice_is_checked_twice() -> None:
    health, clock = Health(), ManualClock()
    for _ in range(2):
        health.add_watch(watcher(clock, ScriptedTransport()), clock)
    assert list(health.ready()) == ["watch-nodes", "watch-nodes-2"]
