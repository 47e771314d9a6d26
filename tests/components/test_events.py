"""Events of components are written at a bounded rate."""

from __future__ import annotations

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.events import BURST, PER_SECOND, EventRecorder, InvolvedObject
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.request_queue import RequestQueue
from everynode.components.run import ComponentOptions
from everynode.kube.resources import EVENTS, PODS
from tests.support.components_cluster import LoopClock, pod_body, running, virtual


@virtual
async def test_events_are_written_at_a_bounded_rate() -> None:
    clock = LoopClock()
    writes = RequestQueue(LocalTransport(Api(clock=clock)))
    recorder = EventRecorder(clock, writes)

    def record(count: int) -> int:
        before = len(writes)
        for _ in range(count):
            recorder.record(
                InvolvedObject("Pod", "one", "default"), "Any", "thing", component="test"
            )
        return len(writes) - before

    assert record(5000) == BURST
    assert record(10) == 0
    await clock.sleep(2)
    assert record(5000) == 2 * PER_SECOND


@virtual
async def test_no_events_are_recorded_when_they_are_switched_off() -> None:
    async with running(ComponentOptions(nodes=1, behaviour=Behaviour(events=False))) as world:
        await world.create(PODS, pod_body("one", node="node-0001"))
        await world.ready("one")
        assert await world.all(EVENTS) == []
