"""Watches for orphans: one per DaemonSet, of metadata alone, and a bounded number."""

from __future__ import annotations

import asyncio

import msgspec

from everynode.api.daemonset import LabelSelector
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import Pod
from everynode.controller.orphan_watches import MAX_WATCHED, OrphanWatches
from everynode.controller.state import DaemonSetState
from everynode.kube.http.transport import MAX_CONNECTIONS
from everynode.kube.requests import METADATA, Request, Response
from everynode.kube.transport import Stream
from tests.support.samples import native, template_with
from tests.support.scripted_server import ManualClock


class Deaf:
    """A server that never answers a watch."""

    def __init__(self) -> None:
        self.opened: list[Request] = []

    async def send(self, request: Request) -> Response:
        raise AssertionError("nothing is listed where watch-lists work")

    async def open(self, request: Request) -> Stream:
        self.opened.append(request)
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        pass


class Stand:
    def __init__(self) -> None:
        self.server = Deaf()
        self.watches = OrphanWatches(self.server, ManualClock())
        self.tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Stand:
        await self.tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self.tasks._tasks):
            task.cancel()
        await self.tasks.__aexit__(None, None, None)

    async def follow(self, *states: DaemonSetState) -> None:
        for state in states:
            self.watches.follow(state, self.seen, self.tasks)
        await asyncio.sleep(0)

    def seen(self, state: DaemonSetState, pod: Pod) -> None:
        raise AssertionError("no pod is there")


def some_set(uid: str = "ds-uid") -> DaemonSetState:
    ds = native(template_with())
    meta = msgspec.structs.replace(ds.metadata, uid=uid)
    return DaemonSetState(msgspec.structs.replace(ds, metadata=meta), {})


async def test_pods_that_match_and_have_no_hash_are_watched_by_their_metadata() -> None:
    async with Stand() as stand:
        await stand.follow(some_set(), some_set())
        [request] = stand.server.opened
        assert request.accept == METADATA
        assert request.path == "/api/v1/namespaces/system/pods"
        assert ("labelSelector", f"app=agent,!{REVISION_HASH}") in request.query


async def test_no_more_are_watched_than_connections_bear_until_one_goes() -> None:
    async with Stand() as stand:
        states = [some_set(f"uid-{number}") for number in range(MAX_WATCHED + 5)]
        await stand.follow(*states)
        assert len(stand.server.opened) == MAX_WATCHED <= MAX_CONNECTIONS / 4
        stand.watches.forget(states[0])
        await stand.follow(*states[1:])
        assert len(stand.server.opened) == MAX_WATCHED + 1


async def test_a_selector_that_selects_everything_is_not_watched() -> None:
    async with Stand() as stand:
        state = some_set()
        state.ds = msgspec.structs.replace(state.ds, selector=LabelSelector())
        await stand.follow(state)
        assert stand.server.opened == []
