"""Fetching images ahead outlives whatever happens to its DaemonSet."""

from __future__ import annotations

import asyncio

from everynode.api import keys
from everynode.api.daemonset import Amount, Flavour, Strategy
from everynode.controller.observe import World
from everynode.controller.prepull import PrePull
from everynode.controller.workload import Workload
from everynode.decide.actions import PodAction
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.decide.fleet import NEW, OLD, make, pod, revision
from tests.kube.scripted import ManualClock


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


class Nobody:
    def pod_written(self, workload: Workload, action: PodAction) -> None:
        pass

    def pod_refused(self, workload: Workload, action: PodAction, error: KubeError) -> None:
        raise AssertionError(error)

    def pulled(self, workload: Workload, done: int, total: int) -> None:
        pass


class Stand:
    """A DaemonSet that is held at v1 and wants the images of v2 fetched ahead."""

    def __init__(self, *nodes: str) -> None:
        self.clock = ManualClock()
        self.server = Slow()
        self.again: list[str] = []
        self.prepull = PrePull(
            Client(self.server, self.clock),
            self.clock,
            world=World([Flavour.ADVANCED]),
            always=False,
            again=lambda key, _: self.again.append(key),
            teller=Nobody(),
        )
        plan = make(
            flavour=Flavour.ADVANCED,
            strategy=Strategy(partition=Amount(100, percent=True)),
            metadata={"annotations": {keys.PREDOWNLOAD_PARALLELISM: "5"}},
        )
        self.workload = Workload(plan.ds, {})
        for name in nodes:
            self.workload.pod_changed(None, pod(OLD, on=name, scheduled=bool(name)))

    def begin(self) -> asyncio.Task[None]:
        revisions = [revision(OLD), revision(NEW)]
        step = self.prepull.step(self.workload, revisions[1], revisions)
        assert step is not None
        return asyncio.get_running_loop().create_task(step)


async def test_a_daemonset_that_goes_while_its_puller_is_created_disturbs_nobody() -> None:
    stand = Stand("n1")
    task = stand.begin()
    await stand.clock.quiet()
    stand.prepull.forget(stand.workload)
    stand.server.answers.set()
    await task
    assert stand.again == []


async def test_a_puller_that_was_created_is_looked_at_again() -> None:
    stand = Stand("n1")
    stand.server.answers.set()
    await stand.begin()
    assert stand.again == [stand.workload.key]


async def test_nothing_is_fetched_for_a_pod_that_points_at_no_node() -> None:
    stand = Stand("", "n1")
    stand.server.answers.set()
    await stand.begin()
    assert len(stand.server.asked) == 1
