"""What people are told of the pods of their DaemonSet, in the words that they know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.controller.events import Recorder
from everynode.controller.metrics import Metrics
from everynode.controller.report import Report
from everynode.controller.workload import Workload
from everynode.decide.actions import Because, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.ledger import Ledger
from everynode.kube.client import Client
from everynode.kube.errors import Denied
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.decide.fleet import make
from tests.kube.scripted import ManualClock

CREATE = CreatePod("n1", "v2", "agent-x", {}, Because.MISSING)
DELETE = DeletePod("n1", "agent-x", "uid", "1", Because.UPDATE)
FAILED = Notice("Warning", "FailedDaemonPod", "Found failed daemon pod")
CLEAR = DeletePod("n1", "agent-x", "uid", "1", Because.FINISHED, FAILED)
CHANGED = Notice("Normal", "SuccessfulUpdatePodInPlace", "successfully update pod agent-x in-place")
CHANGE = PatchPod("n1", "agent-x", "uid", {}, Because.IN_PLACE, notice=CHANGED)
OPEN = PatchPod("n1", "agent-x", "uid", {}, Because.GATE)


class Willing:
    """A server that takes every event."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def send(self, request: Request) -> Response:
        self.events.append(msgspec.json.decode(request.body))
        return Response(201, request.body)

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nobody watches here")

    async def close(self) -> None:
        pass


class Stand:
    def __init__(self) -> None:
        clock = ManualClock()
        self._server = Willing()
        self._recorder = Recorder(Client(self._server, clock), clock)
        self.report = Report(Metrics(clock), self._recorder)
        plan = make()
        self.workload = Workload(plan.ds, {})
        self.workload.ledger = Ledger(plan)

    async def events(self) -> list[tuple[str, str, str]]:
        await self._recorder.flush(1.0)
        return [(each["type"], each["reason"], each["message"]) for each in self._server.events]


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (CREATE, [("Normal", "SuccessfulCreate", "Created pod: agent-x")]),
        (DELETE, [("Normal", "SuccessfulDelete", "Deleted pod: agent-x")]),
        (
            CLEAR,
            [
                ("Warning", "FailedDaemonPod", "Found failed daemon pod"),
                ("Normal", "SuccessfulDelete", "Deleted pod: agent-x"),
            ],
        ),
        (CHANGE, [(CHANGED.type, CHANGED.reason, CHANGED.message)]),
        (OPEN, []),
    ],
)
async def test_what_was_done_is_told(action: PodAction, told: list[tuple[str, str, str]]) -> None:
    stand = Stand()
    stand.report.pod_written(stand.workload, action)
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
    stand.report.pod_refused(stand.workload, action, Denied("no room"))
    assert await stand.events() == [("Warning", reason, message)]
