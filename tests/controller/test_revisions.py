"""Revisions: written before their pods; lost ones are recreated with a back-off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from everynode.api.keys import REVISION_HASH
from everynode.api.objects import ControllerRevision
from everynode.controller.reporter import Reporter
from everynode.controller.revisions import RevisionHistory
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import CreateRevision
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.watch.cache import Cache
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock, failure
from tests.support.transports import WithoutWatches

Object = dict[str, Any]


class Willing(WithoutWatches):
    """A server that creates whatever it is asked for, unless it is told to refuse."""

    def __init__(self, stored: Sequence[Object]) -> None:
        self._stored = stored
        self.created: list[bytes] = []
        self.gone = ""  # the name of a revision that a user deleted
        self.refusal: Response | None = None
        self.holder: bytes | None = None  # what holds the names that are asked for

    async def send(self, request: Request) -> Response:
        if self.gone and request.path.endswith(f"/{self.gone}"):
            return failure(404, "NotFound")
        if self.holder is not None and not request.path.endswith("controllerrevisions"):
            return Response(200, self.holder)
        if request.method == "GET":
            return Response(200, msgspec.json.encode({"metadata": {}, "items": self._stored}))
        if self.refusal is not None:
            return self.refusal
        self.created.append(request.body)
        return Response(201, request.body)


class Notebook(Reporter):
    def __init__(self) -> None:
        self.refused: list[str] = []

    def revision_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        self.refused.append(error.message)


class Stand:
    """A history on a server of its own."""

    def __init__(self, *stored: Object) -> None:
        self.clock = ManualClock()
        self.state = DaemonSetState(make().ds, {})
        self.server = Willing(stored)
        self.notebook = Notebook()
        self.cache = Cache[ControllerRevision](indexes={"owner": lambda _: self.state.owner_key})
        self.history = RevisionHistory(
            Client(self.server, self.clock),
            self.clock,
            cache=self.cache,
            queue=ReconcileQueue(self.clock),
            reporter=self.notebook,
        )

    async def make(self, name: str) -> float:
        """Create a revision and return how long another one of that name would have to wait."""
        body = {"metadata": {"name": name, "namespace": "default"}, "data": {}}
        actions = [CreateRevision(name, body)]
        await self.history.write(self.state, actions)
        assert self.server.refusal is not None or not self.notebook.refused
        return max(0.0, self.history.due_at(self.state, actions) - self.clock.now())


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
    assert await stand.make("agent-2") == 1.0  # a user has changed the template


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


async def test_a_name_held_by_a_revision_that_cannot_be_read_is_not_asked_for_again() -> None:
    stand = Stand()
    stand.server.refusal = failure(409, "AlreadyExists")
    stand.server.holder = b'{"metadata":{"name":"x"},"data":{"a":"\\ud800"}}'
    first = stand.history.choose(stand.state)
    await stand.history.write(stand.state, first.actions)
    assert stand.notebook.refused == []
    assert stand.history.choose(stand.state).target.name != first.target.name


def test_a_target_that_cannot_be_read_is_kept_and_not_created_again() -> None:
    stand = Stand()
    ds = stand.state.ds
    [wanted] = stand.history.choose(stand.state).actions
    assert isinstance(wanted, CreateRevision)
    meta = {**wanted.body["metadata"], "uid": "r", "resourceVersion": "3"}
    body = {**wanted.body, "metadata": meta, "data": {"spec": 7}}
    stand.cache.upsert(msgspec.json.decode(msgspec.json.encode(body), type=ControllerRevision))
    stand.state.ds = msgspec.structs.replace(
        ds,
        status=msgspec.structs.replace(
            ds.status,
            update_revision=meta["labels"][REVISION_HASH],
            observed_generation=ds.metadata.generation,
        ),
    )
    revisions, [fault] = stand.history.revisions(stand.state)
    assert revisions == []
    assert fault.path == f"ControllerRevision {wanted.name}: data"
    choice = stand.history.choose(stand.state)
    assert (choice.target.name, choice.actions) == (wanted.name, ())
    assert choice.target.template == ds.template
