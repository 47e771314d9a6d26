"""In which order the executor sends what waits."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from everynode.controller.executor import MAX_CONCURRENT_WRITES, Executor
from everynode.controller.reporter import Reporter
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import Cause, DeletePod, PodAction
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

ANSWER = Response(200, b'{"metadata": {"uid": "u", "resourceVersion": "7"}}')


class Silent(WithoutWatches):
    """A server that answers one request at a time, when the test says so."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._answers: list[asyncio.Future[Response]] = []

    async def send(self, request: Request) -> Response:
        self.names.append(request.path.rpartition("/")[2])
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        return await answer

    def answer_one(self) -> None:
        self._answers.pop(0).set_result(ANSWER)


class Quiet(Reporter):
    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        pass


def daemonset_state(name: str) -> DaemonSetState:
    ds = make().ds
    metadata = msgspec.structs.replace(ds.metadata, name=name, uid=f"uid-{name}")
    return DaemonSetState(msgspec.structs.replace(ds, metadata=metadata), {})


async def sent(*waiting: tuple[str, int], answers: int) -> list[str]:
    """Whose writes are sent after those that are sent at once; first comes who waits first."""
    clock, server = ManualClock(), Silent()
    client = Client(server, clock, writes_at_once=MAX_CONCURRENT_WRITES)
    executor = Executor(client, clock, queue=ReconcileQueue(clock), reporter=Quiet())
    task = asyncio.create_task(executor.run())
    for name, count in waiting:
        state = daemonset_state(name)
        for index in range(count):
            delete = DeletePod(f"n{index}", f"{name}.{index}", "u", "1", Cause.UPDATE)
            executor.put(state, state.begin_write(delete, clock.now()))
        await clock.quiet()
    for _ in range(answers):
        server.answer_one()
        await clock.quiet()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return [name.partition(".")[0] for name in server.names[MAX_CONCURRENT_WRITES:]]


async def test_a_daemonset_does_not_wait_for_all_writes_of_another() -> None:
    large = ("large", MAX_CONCURRENT_WRITES + 50)
    names = await sent(large, ("small", 1), answers=3)
    assert "small" in names


async def test_daemonsets_take_turns() -> None:
    large = ("large", MAX_CONCURRENT_WRITES + 50)
    names = await sent(large, ("one", 3), ("other", 3), answers=9)
    assert sorted(names) == ["large"] * 3 + ["one"] * 3 + ["other"] * 3
