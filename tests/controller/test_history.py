"""Revisions are written in full view of the others; lost ones are made anew, later and later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from everynode.api.objects import ControllerRevision
from everynode.controller.history import History
from everynode.controller.workload import Workload
from everynode.decide.actions import CreateRevision
from everynode.kube.cache import Cache
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.decide.fleet import make
from tests.kube.scripted import ManualClock, failure

Object = dict[str, Any]


class Willing:
    """A server that creates whatever it is asked for, unless it is told to refuse."""

    def __init__(self, stored: Sequence[Object]) -> None:
        self._stored = stored
        self.created: list[bytes] = []
        self.gone = ""  # the name of a revision that somebody deleted
        self.refusal: Response | None = None

    async def send(self, request: Request) -> Response:
        if self.gone and request.path.endswith(f"/{self.gone}"):
            return failure(404, "NotFound")
        if request.method == "GET":
            return Response(200, msgspec.json.encode({"metadata": {}, "items": self._stored}))
        if self.refusal is not None:
            return self.refusal
        self.created.append(request.body)
        return Response(201, request.body)

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nobody watches here")

    async def close(self) -> None:
        pass


class Notebook:
    def __init__(self) -> None:
        self.refused: list[str] = []

    def revision_refused(self, workload: Workload, error: KubeError) -> None:
        self.refused.append(error.message)


class Stand:
    """A history on a server of its own."""

    def __init__(self, *stored: Object) -> None:
        self.clock = ManualClock()
        self.workload = Workload(make().ds, {})
        self.server = Willing(stored)
        self.notebook = Notebook()
        self.cache = Cache[ControllerRevision](indexes={"owner": lambda _: self.workload.key})
        self.history = History(
            Client(self.server, self.clock),
            self.clock,
            cache=self.cache,
            again=lambda *_: None,
            teller=self.notebook,
        )

    async def make(self, name: str) -> float:
        """Create a revision and return how long another one of that name would have to wait."""
        body = {"metadata": {"name": name, "namespace": "default"}, "data": {}}
        actions = [CreateRevision(name, body)]
        await self.history.write(self.workload, actions)
        assert self.server.refusal is not None or not self.notebook.refused
        return max(0.0, self.history.due_at(self.workload, actions) - self.clock.now())


async def test_nothing_is_written_before_all_revisions_are_seen() -> None:
    late = {"metadata": {"name": "agent-0", "namespace": "default", "resourceVersion": "7"}}
    stand = Stand({**late, "data": {}, "revision": 3})
    await stand.make("agent-1")
    assert stand.server.created == []
    await stand.make("agent-1")
    assert len(stand.server.created) == 1


async def test_a_revision_that_is_gone_is_not_taken_for_stored_because_its_watch_is_silent() -> (
    None
):
    stand = Stand()
    await stand.make("agent-0")
    stand.server.gone = "agent-0"
    await stand.make("agent-1")
    assert not stand.cache.all()  # and the choice is another
    assert len(stand.server.created) == 1
    await stand.make("agent-1")
    assert len(stand.server.created) == 2


async def test_a_revision_that_lost_its_labels_is_not_taken_for_gone() -> None:
    stand = Stand()
    await stand.make("agent-0")
    await stand.make("agent-1")
    assert list(stand.cache.all()) == ["default/agent-0", "default/agent-1"]


async def test_a_lost_revision_is_made_anew_at_once_and_then_later_and_later() -> None:
    stand = Stand()
    assert [await stand.make("agent-1") for _ in range(4)] == [0.0, 1.0, 2.0, 4.0]
    assert [await stand.make("agent-1") for _ in range(20)][-1] == 300.0


async def test_another_revision_does_not_wait_for_one_that_was_lost() -> None:
    stand = Stand()
    for _ in range(5):
        await stand.make("agent-1")
    assert await stand.make("agent-2") == 0.0


async def test_a_revision_that_lasted_was_not_lost_in_a_row() -> None:
    stand = Stand()
    for _ in range(3):
        await stand.make("agent-1")
    await stand.clock.advance(1000.0)
    assert await stand.make("agent-1") == 0.0


async def test_what_is_refused_is_asked_for_later_and_later() -> None:
    stand = Stand()
    stand.server.refusal = failure(403, "Forbidden", "exceeded quota: one")
    assert [await stand.make("agent-1") for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]
    assert stand.notebook.refused == ["exceeded quota: one"] * 4
    assert [await stand.make("agent-1") for _ in range(20)][-1] == 300.0
    assert await stand.make("agent-2") == 1.0  # somebody has changed the template


async def test_a_server_that_was_away_is_asked_at_once_when_it_is_back() -> None:
    stand = Stand()
    stand.server.refusal = failure(503, "ServiceUnavailable", "away")
    assert [await stand.make("agent-1") for _ in range(4)] == [0.0] * 4


async def test_a_refusal_is_forgotten_with_the_next_success() -> None:
    stand = Stand()
    stand.server.refusal = failure(403, "Forbidden", "exceeded quota: one")
    for _ in range(5):
        await stand.make("agent-1")
    stand.server.refusal = None
    stand.notebook.refused.clear()
    assert await stand.make("agent-1") == 0.0
