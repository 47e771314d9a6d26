"""Snapshots from a controller's caches are those of watches of their own, and cost no request."""

from __future__ import annotations

import asyncio

import msgspec

from everynode.api.daemonset import Flavour
from everynode.api.objects import Pod
from everynode.api.versions import decode_daemonset
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.informers import Informers
from everynode.controller.leader import AlwaysLeader
from everynode.controller.run import Controller, ControllerOptions
from everynode.inspect.evaluate import evaluate
from everynode.inspect.live import LiveSnapshot, LiveView
from everynode.inspect.shared_caches import SharedCaches
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.resources import ADVANCED, NODES
from everynode.kube.transport import Stream, Transport
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run
from tests.controller.test_informers import ELSEWHERE, HOME, SET, Stand, a_pod, a_revision
from tests.support.stage import daemonset


class NeverLeader(AlwaysLeader):
    """The other process leads."""

    async def elected(self) -> None:
        await asyncio.Event().wait()


class Counted:
    """A transport that counts what is asked."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests = 0

    async def send(self, request: Request) -> Response:
        self.requests += 1
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        self.requests += 1
        return await self._inner.open(request)

    async def close(self) -> None:
        pass


async def _update(client: Client) -> None:
    containers = [{"name": "agent", "image": "agent:v2"}]
    update = {"spec": {"template": {"spec": {"containers": containers}}}}
    await client.write(verbs.patch(ADVANCED, "agent", update, namespace="default"), bytes)


async def _play(loop: SimLoop) -> None:
    clock = SimClock(loop, "shared")
    transport = LocalTransport(Api(clock=clock))
    client = Client(transport, clock)
    components = Components(transport, clock, ComponentOptions(nodes=4, behaviour=Behaviour()))
    counted = Counted(transport)
    leader = Controller(transport, clock, ControllerOptions())
    standby = Controller(counted, clock, ControllerOptions(), leadership=NeverLeader())
    works = [components.run(), leader.run(), standby.run()]
    tasks = [loop.create_task(each) for each in works]
    await components.ready()
    manifest = daemonset(rolling={"maxUnavailable": 1})
    await client.write(verbs.create(ADVANCED, manifest, namespace="default"), bytes)
    ds = decode_daemonset(
        await client.read(verbs.get(ADVANCED, "agent", namespace="default"), bytes),
        flavour=Flavour.ADVANCED,
    )
    await clock.sleep(1)
    asked = counted.requests
    shared = SharedCaches(standby.informers, standby.watchers).follow(ds)
    own = LiveSnapshot(transport, clock, ds)
    tasks += [loop.create_task(each.run()) for each in (shared, own)]
    await clock.sleep(30)
    await _update(client)
    seen = []
    for _ in range(80):
        await clock.sleep(0.5)
        seen.append(_updated(shared, own, clock.now()))
    assert set(seen) == {0, 1, 2, 3, 4}, "the rollout was not seen"
    shared.changed.clear()
    await client.write(verbs.patch(NODES, "node-0001", {"spec": {"unschedulable": True}}), bytes)
    await clock.sleep(1)
    assert shared.changed.is_set()
    await client.write(verbs.delete(ADVANCED, "agent", namespace="default"), bytes)
    await clock.sleep(30)
    assert (shared.current(), own.current()) == (None, None)
    assert counted.requests == asked, "what a standby shows costs no request"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _updated(shared: LiveView, own: LiveView, now: float) -> int:
    """Return how many nodes are updated; both snapshots say the same."""
    fleets = []
    for each in (shared, own):
        snapshot = each.current()
        assert snapshot is not None
        assert (each.begun, each.troubles, snapshot.missing) == (True, {}, ())
        fleets.append(evaluate(snapshot, now).fleet)
    assert fleets[0] == fleets[1]
    return fleets[0].counts.updated


def test_a_standby_shows_what_watches_of_their_own_show_and_asks_for_nothing() -> None:
    loop = SimLoop()
    run(_play(loop), loop=loop)


def everything_in(stand: Stand) -> Informers:
    informers = stand.informers
    informers.nodes.replace((), "1")
    informers.pods.replace([a_pod(HOME, "p1"), a_pod(ELSEWHERE, "p2")], "1")
    informers.revisions.replace([a_revision(HOME), a_revision(ELSEWHERE)], "1")
    return informers


def test_a_snapshot_has_what_the_set_owns_in_its_own_namespace() -> None:
    snapshot = SharedCaches(everything_in(Stand()), ()).follow(SET).current()
    assert snapshot is not None
    assert [pod.uid for pod in snapshot.pods or ()] == ["p1"]
    assert [each.metadata.namespace for each in snapshot.revisions or ()] == [HOME]


async def test_a_snapshot_hears_of_its_own_objects_until_it_ends() -> None:
    informers = everything_in(Stand())
    snapshot = SharedCaches(informers, ()).follow(SET)
    following = asyncio.create_task(snapshot.run())
    await snapshot.changed.wait()

    def told(pod: Pod) -> bool:
        snapshot.changed.clear()
        informers.pods.upsert(pod)
        return snapshot.changed.is_set()

    foreign = a_pod(HOME, "p3")
    meta = msgspec.structs.replace(foreign.metadata, owner_references=())
    assert told(a_pod(HOME, "p4"))
    assert not told(Pod(metadata=meta))
    following.cancel()
    await asyncio.wait([following])
    assert not told(a_pod(HOME, "p5"))
