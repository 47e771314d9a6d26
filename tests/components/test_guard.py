"""An error in the handling of one object does not stop that of the others."""

from __future__ import annotations

import asyncio
import logging

import pytest

from everynode.components.guard import GuardedCache
from everynode.components.objects import FullNode, FullNodeMeta, FullPod
from everynode.components.timers import Timers
from everynode.kube.resources import PODS
from tests.support.components_cluster import LoopClock, pod_body, running, virtual


def test_subscribers_do_not_stop_each_other(caplog: pytest.LogCaptureFixture) -> None:
    cache: GuardedCache[FullNode] = GuardedCache()
    heard: list[str] = []

    def fail(before: FullNode | None, after: FullNode | None) -> None:
        raise ValueError("odd\nobject")

    def hear(before: FullNode | None, after: FullNode | None) -> None:
        heard.append(after.name if after else "")

    cache.subscribe(fail)
    cache.subscribe(hear)
    with caplog.at_level(logging.ERROR):
        cache.replace([FullNode(FullNodeMeta(name="a")), FullNode(FullNodeMeta(name="b"))], "1")
    assert heard == ["a", "b"]
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert all(record.getMessage().isprintable() for record in caplog.records)


@virtual
async def test_timer_that_fails_does_not_stop_the_others() -> None:
    timers = Timers(LoopClock())
    rung: list[int] = []

    def fail() -> None:
        raise OverflowError("too far away")

    timers.call_later(1.0, fail)
    timers.call_later(1.0, lambda: rung.append(1))
    timers.call_later(2.0, lambda: rung.append(2))
    running_timers = asyncio.ensure_future(timers.run())
    await asyncio.sleep(3)
    assert rung == [1, 2]
    running_timers.cancel()


@virtual
async def test_pod_that_its_kubelet_cannot_handle_is_alone_with_that() -> None:
    async with running() as world:
        take = world.components.simulated_nodes._on_pod

        def fail(before: FullPod | None, after: FullPod | None) -> None:
            take(before, after)
            if after is not None and after.metadata.name == "odd":
                raise KeyError("unexpected")

        world.components.informers.pods.subscribe(fail)
        await world.create(PODS, pod_body("odd", node="node-0001"))
        await world.create(PODS, pod_body("plain", node="node-0001"))
        await world.ready("plain")
