"""Log lines and Events about the pods of a DaemonSet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.controller.events import Recorder
from everynode.controller.metrics import Metrics
from everynode.controller.reporter import ControllerReporter
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import Cause, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.ledger import Ledger
from everynode.kube.client import Client
from everynode.kube.errors import Denied
from everynode.kube.requests import Request, Response
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

CREATE = CreatePod("n1", "v2", "agent-x", {}, Cause.MISSING)
DELETE = DeletePod("n1", "agent-x", "uid", "1", Cause.UPDATE)
FAILED = Notice("Warning", "FailedDaemonPod", "Found failed daemon pod")
CLEAR = DeletePod("n1", "agent-x", "uid", "1", Cause.FINISHED, FAILED)
CHANGED = Notice("Normal", "SuccessfulUpdatePodInPlace", "successfully update pod agent-x in-place")
CHANGE = PatchPod("n1", "agent-x", "uid", {}, Cause.IN_PLACE, notice=CHANGED)
OPEN = PatchPod("n1", "agent-x", "uid", {}, Cause.GATE)


class Willing(WithoutWatches):
    """A server that takes every event."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def send(self, request: Request) -> Response:
        self.events.append(msgspec.json.decode(request.body))
        return Response(201, request.body)


class Stand:
    def __init__(self) -> None:
        clock = ManualClock()
        self._server = Willing()
        self._recorder = Recorder(Client(self._server, clock), clock)
        self.reporter = ControllerReporter(Metrics(clock), self._recorder)
        plan = make()
        self.state = DaemonSetState(plan.ds, {})
        self.state.ledger = Ledger(plan)

    async def events(self) -> list[tuple[str, str, str]]:
        await self._recorder.flush(1.0)
        return [(each["type"], each["reason"], each["message"]) for each in self._server.events]


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (CREATE, [("Normal", "SuccessfulCreate", "Created pod: agent-x on node n1")]),
        (DELETE, [("Normal", "SuccessfulDelete", "Deleted pod: agent-x on node n1")]),
        (
            CLEAR,
            [
                ("Warning", "FailedDaemonPod", "Found failed daemon pod"),
                ("Normal", "SuccessfulDelete", "Deleted pod: agent-x on node n1"),
            ],
        ),
        (CHANGE, [(CHANGED.type, CHANGED.reason, CHANGED.message)]),
        (OPEN, []),
    ],
)
async def test_what_was_done_is_told(action: PodAction, told: list[tuple[str, str, str]]) -> None:
    stand = Stand()
    stand.reporter.pod_written(stand.state, action)
    assert await stand.events() == told


@pytest.mark.parametrize(
    ("action", "reason", "message"),
    [
        (CREATE, "FailedCreate", "Error creating: no room"),
        (DELETE, "FailedDelete", "Error deleting: no room"),
        (
            CHANGE,
            "FailedUpdatePodInPlace",
            "failed to update pod agent-x in-place(revision agent-v2): no room",
        ),
    ],
)
async def test_what_was_refused_is_told(action: PodAction, reason: str, message: str) -> None:
    stand = Stand()
    stand.reporter.pod_write_failed(stand.state, action, Denied("no room"))
    assert await stand.events() == [("Warning", reason, message)]


async def test_a_refused_adoption_is_reported_in_one_short_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand()
    # API servers show the whole object that they do not like.
    dump = "Pod is invalid: spec: Forbidden\n" + "core.PodSpec{Volumes:nil}\n" * 500
    with caplog.at_level("WARNING", logger="everynode"):
        stand.reporter.adoption_failed(stand.state, Denied(dump))
    [record] = caplog.records
    said = record.__dict__["fields"]["error"]
    assert said.startswith("Pod is invalid: spec: Forbidden")
    assert "\n" not in said
    assert len(said) <= 200
    [(kind, reason, message)] = await stand.events()
    assert (kind, reason) == ("Warning", "FailedAdoption")
    assert message.startswith("Error adopting orphans: Pod is invalid")
    assert len(message) <= 1024


async def test_a_node_that_cannot_be_evaluated_is_named() -> None:
    stand = Stand()
    stand.reporter.node_failed(stand.state, "n1", ValueError("x" * 5000))
    ((kind, reason, message),) = await stand.events()
    assert (kind, reason) == ("Warning", "InternalError")
    assert message.startswith("Everynode cannot handle node n1 and leaves its pod alone: ValueErr")
    assert len(message) < 300


def test_times_in_the_future_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand()
    stand.reporter.times_ahead(stand.state, {f"n{i}": 100.0 + i for i in range(9)} | {"m": 0.5})
    (line,) = caplog.records
    told = vars(line)["fields"]
    assert (told["nodes"], told["seconds"]) == ("n0, n1, n2, …", 108)
