"""How many events there are."""

from __future__ import annotations

from everynode.cluster.local import LocalTransport
from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.events import BURST, PER_SECOND, Recorder, Subject
from everynode.cluster.machinery.run import Options
from everynode.cluster.machinery.writes import Writes
from everynode.cluster.rest import Api
from everynode.kube.resources import EVENTS, PODS
from tests.cluster.machinery.world import LoopClock, pod_body, running, virtual


@virtual
async def test_events_are_written_at_a_bounded_rate() -> None:
    clock = LoopClock()
    writes = Writes(LocalTransport(Api(clock=clock)))
    recorder = Recorder(clock, writes)

    def record(count: int) -> int:
        before = len(writes)
        for _ in range(count):
            recorder.record(Subject("Pod", "one", "default"), "Any", "thing", component="test")
        return len(writes) - before

    assert record(5000) == BURST
    assert record(10) == 0
    await clock.sleep(2)
    assert record(5000) == 2 * PER_SECOND


@virtual
async def test_whoever_wants_no_events_gets_none() -> None:
    async with running(Options(nodes=1, behaviour=Behaviour(events=False))) as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        assert await world.all(EVENTS) == []
