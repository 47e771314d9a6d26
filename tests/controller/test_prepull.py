"""Fetching images ahead outlives whatever happens to its DaemonSet."""

from __future__ import annotations

import asyncio

from everynode.api import keys
from everynode.api.daemonset import Flavour, IntOrPercent, UpdateStrategy
from everynode.controller.informers import Informers
from everynode.controller.prepull import PrePull
from everynode.controller.reporter import Reporter
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import PodAction
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.support.fleet import NEW, OLD, make, pod, revision
from tests.support.scripted_server import ManualClock


class Slow:
    """A server that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers = asyncio.Event()

    async def send(self, request: Request) -> Response:
        self.asked.append(request.body)
        await self.answers.wait()
        return Response(201, request.body)

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nobody watches here")

    async def close(self) -> None:
        pass


class Strict(Reporter):
    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        pass

    def pod_write_failed(self, state: DaemonSetState, action: PodAction, error: KubeError) -> None:
        raise AssertionError(error)

    def images_pulled(self, state: DaemonSetState, done: int, total: int) -> None:
        pass


class Stand:
    """A DaemonSet that is held at v1 and wants the images of v2 fetched ahead."""

    def __init__(self, *nodes: str) -> None:
        self.clock = ManualClock()
        self.server = Slow()
        self.queue = ReconcileQueue(self.clock)
        self.prepull = PrePull(
            Client(self.server, self.clock),
            self.clock,
            informers=Informers([Flavour.ADVANCED]),
            always=False,
            queue=self.queue,
            reporter=Strict(),
        )
        plan = make(
            flavour=Flavour.ADVANCED,
            strategy=UpdateStrategy(partition=IntOrPercent(100, percent=True)),
            metadata={"annotations": {keys.PREDOWNLOAD_PARALLELISM: "5"}},
        )
        self.state = DaemonSetState(plan.ds, {})
        for name in nodes:
            self.state.pod_changed(None, pod(OLD, on=name, scheduled=bool(name)))

    def begin(self) -> asyncio.Task[None]:
        revisions = [revision(OLD), revision(NEW)]
        step = self.prepull.step(self.state, revisions[1], revisions)
        assert step is not None
        return asyncio.get_running_loop().create_task(step)


async def test_a_daemonset_that_goes_while_its_puller_is_created_disturbs_nobody() -> None:
    stand = Stand("n1")
    task = stand.begin()
    await stand.clock.quiet()
    stand.prepull.forget(stand.state)
    stand.server.answers.set()
    await task
    assert not stand.queue._due_at


async def test_a_puller_that_was_created_is_looked_at_again() -> None:
    stand = Stand("n1")
    stand.server.answers.set()
    await stand.begin()
    assert list(stand.queue._due_at) == [stand.state.key]


async def test_nothing_is_fetched_for_a_pod_that_points_at_no_node() -> None:
    stand = Stand("", "n1")
    stand.server.answers.set()
    await stand.begin()
    assert len(stand.server.asked) == 1
