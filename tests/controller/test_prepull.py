"""Pulling images ahead, while its DaemonSet changes or is deleted."""

from __future__ import annotations

import asyncio

import msgspec

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
from tests.support.fleet import NEW, OLD, make, pod, revision
from tests.support.scripted_server import ManualClock, failure
from tests.support.transports import WithoutWatches


class Slow(WithoutWatches):
    """A server that answers when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers = asyncio.Event()
        self.refusal: Response | None = None

    async def send(self, request: Request) -> Response:
        self.asked.append(request.body)
        await self.answers.wait()
        return self.refusal or Response(201, request.body)


class Notebook(Reporter):
    def __init__(self) -> None:
        self.refused: list[PodAction] = []

    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        pass

    def pod_write_failed(self, state: DaemonSetState, action: PodAction, error: KubeError) -> None:
        self.refused.append(action)

    def images_pulled(self, state: DaemonSetState, done: int, total: int) -> None:
        pass


class Stand:
    """A DaemonSet that is held at v1 and wants the images of v2 fetched ahead."""

    def __init__(self, *nodes: str) -> None:
        self.clock = ManualClock()
        self.server = Slow()
        self.queue = ReconcileQueue(self.clock)
        self.notebook = Notebook()
        self.prepull = PrePull(
            Client(self.server, self.clock),
            self.clock,
            informers=Informers([Flavour.ADVANCED]),
            always=False,
            by_scheduler=True,
            queue=self.queue,
            reporter=self.notebook,
        )
        plan = make(
            flavour=Flavour.ADVANCED,
            strategy=UpdateStrategy(partition=IntOrPercent(100, percent=True)),
            metadata={"annotations": {keys.PREDOWNLOAD_PARALLELISM: "5"}},
        )
        self.state = DaemonSetState(plan.ds, {})
        for name in nodes:
            self.state.pod_changed(None, pod(OLD, on=name, scheduled=bool(name)))

    def begin(self, target: str = NEW) -> asyncio.Task[None]:
        revisions = [revision(OLD), revision(target)]
        step = self.prepull.step(self.state, revisions[1], revisions)
        assert step is not None
        return asyncio.get_running_loop().create_task(step)


async def test_a_daemonset_deleted_while_its_pull_pod_is_created_causes_no_error() -> None:
    stand = Stand("n1")
    task = stand.begin()
    await stand.clock.quiet()
    stand.prepull.forget(stand.state)
    stand.server.answers.set()
    await task
    assert not stand.queue._due_at


async def test_a_created_pull_pod_causes_another_reconcile() -> None:
    stand = Stand("n1")
    stand.server.answers.set()
    await stand.begin()
    assert list(stand.queue._due_at) == [stand.state.key]


async def test_nothing_is_fetched_for_a_pod_that_points_at_no_node() -> None:
    stand = Stand("", "n1")
    stand.server.answers.set()
    await stand.begin()
    assert len(stand.server.asked) == 1


# --- Refused pull pods ---------------------------------------------------------------------------


def refused(*nodes: str) -> Stand:
    stand = Stand(*nodes)
    stand.server.answers.set()
    stand.server.refusal = failure(403, "Forbidden", "denied by policy: no pull pods")
    return stand


async def test_refused_pull_pods_are_tried_later_and_later_and_reported_once_a_step() -> None:
    stand = refused("n1", "n2")
    for tries, wait in enumerate((1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0), 1):
        await stand.begin()
        due_at = stand.prepull._next_at[stand.state.key]
        assert due_at - stand.clock.now() == wait
        assert len(stand.notebook.refused) == tries
        await stand.clock.advance(wait - 0.5)
        assert stand.prepull.step(stand.state, revision(NEW), [revision(OLD)]) is None
        await stand.clock.advance(0.5)


async def test_refused_pull_pods_are_named_until_they_can_be_created() -> None:
    stand = refused("n1", "n2")
    await stand.begin()
    [trouble] = stand.state.troubles
    assert trouble.path == "images pulled ahead"
    assert trouble.message == (
        "pull pods cannot be created on 2 nodes: denied by policy: no pull pods"
    )
    stand.server.refusal = None
    await stand.clock.advance(1.0)
    await stand.begin()
    assert stand.state.troubles == ()


async def test_a_new_target_is_not_kept_waiting_by_what_was_refused_before() -> None:
    stand = refused("n1")
    await stand.begin()
    await stand.begin(target="v3")
    assert len(stand.server.asked) == 2


async def test_that_no_images_are_wanted_any_more_ends_the_condition() -> None:
    stand = refused("n1")
    await stand.begin()
    ds = stand.state.ds
    meta = msgspec.structs.replace(ds.metadata, annotations={})
    stand.state.ds = msgspec.structs.replace(ds, metadata=meta)
    assert not stand.prepull.wanted(stand.state)
    assert stand.state.troubles == ()
