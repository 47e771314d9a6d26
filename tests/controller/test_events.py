"""The recorder: few writes, the last state in the end, and reconciles never wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from everynode.api.objects import ObjectReference
from everynode.controller.events import (
    BURST,
    COMBINE_WINDOW,
    LAST_WORDS,
    MAX_PENDING,
    MAX_SEPARATE,
    REFILL_SECONDS,
    Recorder,
)
from everynode.decide.actions import Notice
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError
from tests.support.scripted_server import ManualClock, failure

AGENT = ObjectReference("DaemonSet", "monitoring", "agent", "uid-1", "apps.kruise.io/v1beta1")
OTHER = ObjectReference("DaemonSet", "monitoring", "other", "uid-2", "apps/v1")


class Server:
    """Keeps events as an API server does, and fails on request."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.requests: list[Request] = []
        self.faults: list[Response | TransportError] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, TransportError):
                raise fault
            return fault
        body = msgspec.json.decode(request.body)
        if request.method == "PATCH":
            name = request.path.rsplit("/", 1)[1]
            if name not in self.events:
                return failure(404, "NotFound", "gone", kind="events")
            self.events[name] |= body
        else:
            name = body["metadata"]["name"]
            if name in self.events:
                return failure(409, "AlreadyExists", "there", kind="events")
            self.events[name] = body
        return Response(200, b"{}")

    async def open(self, request: Request) -> Any:
        raise AssertionError("nothing is watched here")

    async def close(self) -> None:
        pass


class Scene:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = Server()
        self.write_budget = 10.0
        client = Client(self.server, self.clock, write_budget=lambda: self.write_budget)
        self.recorder = Recorder(client, self.clock)

    def created(self, number: int, about: ObjectReference = AGENT) -> None:
        notice = Notice("Normal", "SuccessfulCreate", f"Created pod: agent-{number}")
        self.recorder.record(about, notice)

    def messages(self) -> list[str]:
        return [event["message"] for event in self.server.events.values()]


@asynccontextmanager
async def recording() -> AsyncIterator[Scene]:
    scene = Scene()
    task = asyncio.ensure_future(scene.recorder.run())
    try:
        yield scene
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_an_event_has_the_shape_people_know() -> None:
    async with recording() as scene:
        scene.created(1)
        await scene.clock.quiet()
        [(name, event)] = scene.server.events.items()
        prefix, _, stamp = name.rpartition(".")
        assert (prefix, int(stamp, 16)) == ("agent", int(scene.clock.now() * 1e9))
        assert scene.server.requests[0].path == "/api/v1/namespaces/monitoring/events"
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "monitoring"},
            "involvedObject": {
                "kind": "DaemonSet",
                "namespace": "monitoring",
                "name": "agent",
                "uid": "uid-1",
                "apiVersion": "apps.kruise.io/v1beta1",
            },
            "type": "Normal",
            "reason": "SuccessfulCreate",
            "message": "Created pod: agent-1",
            "count": 1,
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "lastTimestamp": "2023-11-14T22:13:20Z",
            "source": {"component": "daemonset-controller"},
            "reportingComponent": "daemonset-controller",
            "reportingInstance": "",
        }


async def test_the_same_event_again_is_counted() -> None:
    async with recording() as scene:
        for _ in range(3):
            scene.created(1)
            await scene.clock.advance(5)
        [event] = scene.server.events.values()
        assert (event["count"], event["lastTimestamp"]) == (3, "2023-11-14T22:13:30Z")
        assert [request.method for request in scene.server.requests] == ["POST", "PATCH", "PATCH"]


async def test_small_numbers_are_told_one_by_one() -> None:
    async with recording() as scene:
        for number in range(MAX_SEPARATE):
            scene.created(number)
        await scene.clock.quiet()
        assert scene.messages() == [
            f"Created pod: agent-{number}" for number in range(MAX_SEPARATE)
        ]


async def test_large_numbers_are_combined_and_counted_to_the_last() -> None:
    async with recording() as scene:
        for number in range(100):
            scene.created(number)
            await scene.clock.advance(1)
        await scene.clock.advance(REFILL_SECONDS)
        assert len(scene.server.events) == MAX_SEPARATE + 1
        combined = list(scene.server.events.values())[-1]
        assert combined["message"] == "(combined from similar events): Created pod: agent-99"
        assert combined["count"] == 100 - MAX_SEPARATE


async def test_at_the_end_of_a_rollout_the_last_count_does_not_wait() -> None:
    async with recording() as scene:
        for number in range(100):
            scene.created(number)
            await scene.clock.advance(0.1)
        scene.recorder.hurry(AGENT.uid)
        await scene.clock.quiet()
        assert list(scene.server.events.values())[-1]["count"] == 100 - MAX_SEPARATE
        written = len(scene.server.requests)
        await scene.clock.advance(2 * REFILL_SECONDS)
        assert len(scene.server.requests) == written


async def test_a_rollout_of_thousands_writes_a_handful() -> None:
    async with recording() as scene:
        for number in range(5000):
            scene.created(number)
            deleted = Notice("Normal", "SuccessfulDelete", f"Deleted pod: agent-{number}")
            scene.recorder.record(AGENT, deleted)
            if number % 14 == 0:
                await scene.clock.advance(1)
        await scene.clock.advance(2 * REFILL_SECONDS)
        assert len(scene.server.requests) < BURST + 5000 / 14 / REFILL_SECONDS + 5
        counts = sorted(event["count"] for event in scene.server.events.values())
        assert counts[-2:] == [5000 - MAX_SEPARATE, 5000 - MAX_SEPARATE]


async def test_one_object_s_flood_does_not_hold_up_another_s_event() -> None:
    async with recording() as scene:
        for number in range(BURST + 5):
            scene.recorder.record(AGENT, Notice("Normal", f"Reason{number}", "x"))
        scene.created(1, OTHER)
        await scene.clock.quiet()
        assert len(scene.server.events) == BURST + 1
        assert "Created pod: agent-1" in scene.messages()
        await scene.clock.advance(REFILL_SECONDS)
        assert len(scene.server.events) == BURST + 2


async def test_warnings_are_not_held_up_by_ordinary_events() -> None:
    async with recording() as scene:
        for number in range(BURST + 5):
            scene.recorder.record(AGENT, Notice("Normal", f"Reason{number}", "x"))
        scene.recorder.record(AGENT, Notice("Warning", "FailedCreate", "Error creating: quota"))
        await scene.clock.quiet()
        assert "Error creating: quota" in scene.messages()


async def test_after_a_pause_events_are_recorded_separately_again() -> None:
    async with recording() as scene:
        for number in range(MAX_SEPARATE + 2):
            scene.created(number)
        await scene.clock.advance(COMBINE_WINDOW + 1)
        scene.created(77)
        await scene.clock.quiet()
        assert scene.messages()[-1] == "Created pod: agent-77"


async def test_an_event_that_the_server_has_forgotten_is_written_anew() -> None:
    async with recording() as scene:
        scene.created(1)
        await scene.clock.advance(100)
        scene.server.events.clear()
        scene.created(1)
        await scene.clock.quiet()
        [event] = scene.server.events.values()
        assert event["count"] == 2


@pytest.mark.parametrize(
    "fault",
    [
        failure(503, "ServiceUnavailable"),
        failure(429, "TooManyRequests"),
        TransportError("connection refused", sent=False),
    ],
)
async def test_a_server_that_cannot_serve_gets_the_event_later(
    fault: Response | TransportError,
) -> None:
    async with recording() as scene:
        scene.server.faults = [fault, fault]
        scene.created(1)
        await scene.clock.advance(30)
        assert scene.messages() == ["Created pod: agent-1"]


async def test_an_answer_that_was_lost_makes_no_second_event() -> None:
    async with recording() as scene:
        scene.created(1)
        name = next(iter(scene.recorder._entries.values())).name
        scene.server.events[name] = {"message": "Created pod: agent-1"}
        scene.server.faults = [TransportError("reset", sent=True)]
        await scene.clock.advance(30)
        assert len(scene.server.events) == 1
        assert len(scene.server.requests) == 2


async def test_refused_events_are_dropped() -> None:
    async with recording() as scene:
        scene.server.faults = [failure(403, "Forbidden", 'cannot create resource "events"')]
        scene.created(1)
        await scene.clock.advance(60)
        assert len(scene.server.requests) == 1
        assert scene.recorder.dropped == 1


async def test_a_process_that_does_not_lead_writes_nothing() -> None:
    async with recording() as scene:
        scene.write_budget = 0.0
        scene.created(1)
        await scene.clock.advance(60)
        assert scene.server.requests == []


async def test_a_leader_elected_again_continues_the_count_of_an_event() -> None:
    async with recording() as scene:
        for number in range(MAX_SEPARATE + 1):
            scene.created(number)
        await scene.clock.advance(1)
        scene.write_budget = 0.0
        scene.created(MAX_SEPARATE + 1)
        await scene.clock.advance(1)
        scene.write_budget = 10.0
        scene.created(MAX_SEPARATE + 2)
        await scene.clock.advance(60)
        assert len(scene.server.events) == MAX_SEPARATE + 1
        assert list(scene.server.events.values())[-1]["count"] == 3


async def test_what_waits_is_bounded() -> None:
    scene = Scene()
    for number in range(MAX_PENDING + 10):
        about = ObjectReference("DaemonSet", "n", f"d{number}", f"u{number}", "apps/v1")
        scene.created(1, about)
    assert scene.recorder.dropped == 10


async def test_a_clean_end_writes_what_still_waits() -> None:
    scene = Scene()
    for number in range(BURST):
        scene.recorder.record(AGENT, Notice("Normal", f"Reason{number}", "x"))
        scene.recorder.record(OTHER, Notice("Warning", f"Reason{number}", "x"))
    await scene.recorder.flush(5)
    assert len(scene.server.events) == 2 * BURST


async def test_a_clean_end_writes_no_more_than_the_newest_events_beyond_the_rate_limit() -> None:
    async with recording() as scene:
        for number in range(BURST):
            scene.recorder.record(AGENT, Notice("Normal", f"Reason{number}", "x"))
        await scene.clock.advance(1)
        for number in range(BURST, 2 * BURST):
            scene.recorder.record(AGENT, Notice("Normal", f"Reason{number}", "x"))
            await scene.clock.advance(0.1)
        await scene.recorder.flush(5)
        reasons = [event["reason"] for event in scene.server.events.values()]
        newest = range(2 * BURST - LAST_WORDS, 2 * BURST)
        assert reasons[BURST:] == [f"Reason{number}" for number in newest]
        assert scene.recorder.dropped == BURST - LAST_WORDS


async def test_long_names_and_messages_are_cut() -> None:
    async with recording() as scene:
        about = ObjectReference("DaemonSet", "n", "d" * 253, "u", "apps/v1")
        scene.recorder.record(about, Notice("Warning", "FailedCreate", "x" * 5000))
        await scene.clock.quiet()
        [(name, event)] = scene.server.events.items()
        assert len(name) <= 253
        assert len(event["message"]) == 1024
