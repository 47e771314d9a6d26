"""One process, several terms: writes of an earlier term are seen by the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from everynode.api.daemonset import Flavour
from everynode.api.objects import ObjectReference, Pod
from everynode.api.versions import decode_daemonset
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.executor import MAX_CONCURRENT_WRITES
from everynode.controller.run import Controller, ControllerOptions
from everynode.decide.actions import Notice
from everynode.decide.node.availability import is_ready
from everynode.kube import verbs
from everynode.kube.client import WRITE_SECONDS, Client
from everynode.kube.requests import Request, Response
from everynode.kube.resources import ADVANCED, EVENTS, NODES, PODS
from everynode.kube.transport import Stream, Transport
from everynode.kube.watch.decode import Decoder
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run
from tests.support.stage import daemonset

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


class Turns:
    """Leadership that is given and taken by the test."""

    def __init__(self) -> None:
        self._mine, self._theirs = asyncio.Event(), asyncio.Event()
        self._mine.set()

    def write_budget_seconds(self) -> float:
        return WRITE_SECONDS

    async def elected(self) -> None:
        await self._mine.wait()

    async def lost(self) -> None:
        await self._theirs.wait()

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def resign(self, settle: Callable[[], Awaitable[None]]) -> None:
        pass

    def lose(self) -> None:
        self._mine.clear()
        self._theirs.set()

    def win(self) -> None:
        self._theirs.clear()
        self._mine.set()


class Slow:
    """A server that executes deletes slowly, also if the client does not wait for them."""

    def __init__(self, inner: Transport, loop: SimLoop) -> None:
        self._inner = inner
        self._loop = loop
        self.deletes: list[str] = []
        self.goes_on = asyncio.Event()
        self.unanswered = ("", "")  # a method, or any, and the end of a path

    async def send(self, request: Request) -> Response:
        await self._answered(request)
        if request.method != "DELETE":
            return await self._inner.send(request)
        self.deletes.append(request.path.rpartition("/")[2])
        return await asyncio.shield(self._loop.create_task(self._delete(request)))

    async def _delete(self, request: Request) -> Response:
        await self.goes_on.wait()
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        await self._answered(request)
        return await self._inner.open(request)

    async def _answered(self, request: Request) -> None:
        method, path = self.unanswered
        if path and request.path.endswith(path) and method in ("", request.method):
            await asyncio.Event().wait()

    async def close(self) -> None:
        pass


class Stand:
    """Three nodes in virtual time, and a controller that leads when the test lets it."""

    def __init__(self, loop: SimLoop) -> None:
        self.clock = SimClock(loop, "terms")
        transport = LocalTransport(Api(clock=self.clock))
        self.client = Client(transport, self.clock)
        self.turns = Turns()
        self.slow = Slow(transport, loop)
        machines = ComponentOptions(nodes=3, behaviour=Behaviour())
        self.components = Components(transport, self.clock, machines)
        options = ControllerOptions(forgiving=False)
        self.controller = Controller(self.slow, self.clock, options, leadership=self.turns)
        self._tasks = [
            loop.create_task(work) for work in (self.components.run(), self.controller.run())
        ]

    async def ready(self, image: str) -> list[Pod]:
        pods = await self.client.read_all(PODS, Decoder(Pod).one)
        mine = [pod for pod in pods if pod.spec.containers[0].image == image]
        return [pod for pod in mine if is_ready(pod) and not pod.terminating]

    async def until(self, reached: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(600):
            while not await reached():
                await self.clock.sleep(0.1)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


async def _play_two_terms(loop: SimLoop) -> None:
    stand = Stand(loop)
    await stand.components.ready()
    manifest = daemonset(rolling={"maxUnavailable": 1})
    await stand.client.write(verbs.create(ADVANCED, manifest, namespace="default"), bytes)

    async def installed() -> bool:
        return len(await stand.ready("agent:v1")) == 3

    await stand.until(installed)
    containers = [{"name": "agent", "image": "agent:v2"}]
    update = {"spec": {"template": {"spec": {"containers": containers}}}}
    await stand.client.write(verbs.patch(ADVANCED, "agent", update, namespace="default"), bytes)

    async def begun() -> bool:
        return bool(stand.slow.deletes)

    await stand.until(begun)
    stand.turns.lose()
    await stand.clock.sleep(0.1)
    # The next term would take another node first.
    taint = verbs.patch(NODES, "node-0003", {"spec": {"taints": [TAINT]}})
    await stand.client.write(taint, bytes)
    stand.turns.win()
    await stand.clock.sleep(WRITE_SECONDS / 2)
    assert len(stand.slow.deletes) == 1
    stand.slow.goes_on.set()

    async def updated() -> bool:
        return len(await stand.ready("agent:v2")) == 2

    await stand.until(updated)
    await stand.end()


def test_a_write_of_an_earlier_term_is_awaited_before_the_next_begins() -> None:
    loop = SimLoop()
    run(_play_two_terms(loop), loop=loop)


async def _told(stand: Stand) -> bool:
    decode = partial(decode_daemonset, flavour=Flavour.ADVANCED)
    (ds,) = await stand.client.read_all(ADVANCED, decode)
    return ds.status.ready == 3


async def _install(stand: Stand) -> None:
    await stand.components.ready()
    await stand.client.write(verbs.create(ADVANCED, daemonset(), namespace="default"), bytes)
    await stand.until(partial(_told, stand))
    await stand.clock.sleep(5)


async def _write_status(stand: Stand) -> None:
    """Another controller writes the status."""
    other = {"status": {"numberReady": 1}}
    await stand.client.write(
        verbs.patch(ADVANCED, "agent", other, namespace="default", subresource="status"), bytes
    )
    await stand.clock.sleep(1)


async def _play_status_conflict(loop: SimLoop, end: Callable[[Stand], None], *, kept: bool) -> None:
    stand = Stand(loop)
    await _install(stand)
    await _write_status(stand)
    end(stand)
    await stand.clock.sleep(30)
    assert await _told(stand) is not kept
    await stand.until(partial(_told, stand))
    await stand.end()


async def _play_standby(loop: SimLoop, *, between_terms: bool = False) -> None:
    stand = Stand(loop)
    await _install(stand)
    if between_terms:
        stand.slow.unanswered = ("", "/pods")
        stand.clock.jump(-5)
        await stand.clock.sleep(30)
    stand.turns.lose()
    await stand.clock.sleep(1)
    await _write_status(stand)
    metrics = stand.controller.metrics.exposition().decode().splitlines()
    await stand.end()
    (contested,) = [each for each in metrics if each.startswith("everynode_daemonset_contested{")]
    assert contested.endswith(" 0.0")


def test_a_status_that_the_next_leader_writes_is_not_contested() -> None:
    loop = SimLoop()
    run(_play_standby(loop), loop=loop)


def test_nor_is_it_where_the_lead_was_lost_between_two_terms() -> None:
    loop = SimLoop()
    run(_play_standby(loop, between_terms=True), loop=loop)


def test_a_status_back_off_outlives_a_term_that_ends_because_the_clock_is_set() -> None:
    loop = SimLoop()
    run(_play_status_conflict(loop, lambda stand: stand.clock.jump(-5), kept=True), loop=loop)


def test_a_status_back_off_ends_when_leadership_is_lost() -> None:
    def lose_and_win(stand: Stand) -> None:
        stand.turns.lose()
        loop.call_later(1, stand.turns.win)

    loop = SimLoop()
    run(_play_status_conflict(loop, lose_and_win, kept=False), loop=loop)


async def _play_busy_server(loop: SimLoop) -> None:
    stand = Stand(loop)
    await _install(stand)
    stand.slow.unanswered = ("POST", "/controllerrevisions")
    for number in range(2 * MAX_CONCURRENT_WRITES):
        nowhere = {"spec": {"nodeSelector": {"no": "node"}}}
        other = daemonset(f"other-{number}", template=nowhere)
        await stand.client.write(verbs.create(ADVANCED, other, namespace="default"), bytes)
    await stand.clock.sleep(1)
    victim, *_ = await stand.ready("agent:v1")
    stand.slow.goes_on.set()
    await stand.client.write(verbs.delete(PODS, victim.name, namespace="default"), bytes)

    async def replaced() -> bool:
        ready = await stand.ready("agent:v1")
        return len(ready) == 3 and victim.uid not in [pod.uid for pod in ready]

    await stand.until(replaced)
    await stand.end()


def test_writes_to_pods_wait_for_no_other_writes() -> None:
    loop = SimLoop()
    run(_play_busy_server(loop), loop=loop)


async def _play_shutdown(loop: SimLoop) -> None:
    stand = Stand(loop)
    about = ObjectReference("DaemonSet", "default", "agent", "uid-1", "apps/v1")
    await stand.clock.sleep(5)
    for number in range(60):  # more than the rate limit lets through
        message = f"Created pod: agent-{number}"
        stand.controller.recorder.record(about, Notice("Normal", "SuccessfulCreate", message))
        await stand.clock.sleep(0.1)
    await stand.end()
    events = await stand.client.read_all(EVENTS, msgspec.json.decode)
    assert sum(each["count"] for each in events if each["reason"] == "SuccessfulCreate") == 60


def test_events_that_wait_at_shutdown_are_sent() -> None:
    loop = SimLoop()
    run(_play_shutdown(loop), loop=loop)
