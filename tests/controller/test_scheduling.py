from __future__ import annotations

import asyncio

import pytest

from everynode.api.keys import CONTAINERS_READY, INPLACE_UPDATE_READY, READY
from everynode.api.objects import Pod
from everynode.clock import SystemClock
from everynode.controller.scheduling import BATCH_DELAY, DEFER_DELAY, ReconcileQueue, unblocks
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from tests.support.samples import condition, pod
from tests.support.scripted_server import ManualClock


async def test_a_key_added_twice_comes_out_once() -> None:
    queue = ReconcileQueue(SystemClock())
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_comes_out_when_its_time_has_come() -> None:
    clock = SystemClock()
    queue = ReconcileQueue(clock)
    when = clock.now() + 0.02
    queue.add_at("later", when)
    assert await queue.get() == "later"
    assert clock.now() >= when


async def test_the_earliest_of_several_times_counts_and_only_once() -> None:
    clock = SystemClock()
    queue = ReconcileQueue(clock)
    queue.add_at("a", clock.now() + 3600)
    queue.add_at("a", clock.now() - 1)
    assert await queue.get() == "a"
    queue.add("b")
    assert await queue.get() == "b"


async def test_a_waiting_consumer_is_woken_by_a_new_key() -> None:
    queue = ReconcileQueue(SystemClock())
    consumer = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await consumer == "a"


async def test_a_discarded_key_does_not_come_out() -> None:
    clock = SystemClock()
    queue = ReconcileQueue(clock)
    queue.add("gone")
    queue.add_at("gone", clock.now() - 1)
    queue.discard("gone")
    queue.add("here")
    assert await queue.get() == "here"


async def test_what_can_wait_a_moment_comes_out_with_what_cannot() -> None:
    queue = ReconcileQueue(SystemClock())
    queue.add_deferred("a")
    assert len(queue) == 1
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_what_can_wait_a_moment_comes_out_by_itself() -> None:
    clock = SystemClock()
    queue = ReconcileQueue(clock)
    asked_at = clock.now()
    queue.add_deferred("a")
    queue.add_deferred("a")
    assert await queue.get() == "a"
    assert clock.now() >= asked_at + DEFER_DELAY
    assert len(queue) == 0


async def test_times_that_were_superseded_are_forgotten() -> None:
    clock = ManualClock()
    queue = ReconcileQueue(clock)
    for _ in range(1000):
        queue.add_at("a", clock.now() + 600.0)  # as every look asks for again
        queue.add_at("a", clock.now() + 0.5)
        await clock.advance(0.5)
        assert await queue.get() == "a"
    assert len(queue._times) < 100


async def test_a_key_that_came_out_comes_again_only_when_asked_for_again() -> None:
    clock = ManualClock()
    queue = ReconcileQueue(clock)
    queue.add_at("a", clock.now() + 20.0)
    queue.add("a")
    assert await queue.get() == "a"
    await clock.advance(20.0)
    queue.add("b")
    assert await queue.get() == "b"
    assert len(queue) == 0


async def test_what_happens_together_comes_out_together_and_what_cannot_wait_before() -> None:
    clock = ManualClock()
    queue = ReconcileQueue(clock)
    queue.add_batched("together")
    await clock.advance(BATCH_DELAY / 2)
    queue.add_batched("together")
    queue.add("alone")
    assert await queue.get() == "alone"
    await clock.advance(BATCH_DELAY / 2)
    assert await queue.get() == "together"
    assert len(queue) == 0


def test_a_time_is_kept_though_the_clock_was_wrong_when_it_was_asked_for() -> None:
    loop = SimLoop(1)
    clock = SimClock(loop, 1)

    async def wait() -> float:
        queue = ReconcileQueue(clock)
        when = clock.now() + 3.0
        clock.jump(-3600.0)
        queue.add_at("a", when)
        consumer = asyncio.create_task(queue.get())
        await clock.sleep(1.0)
        clock.set_right()
        await consumer
        return clock.now() - when

    try:
        assert 0.0 <= loop.run_until_complete(wait()) <= 60.0
    finally:
        loop.close()


def test_a_time_comes_no_later_when_the_clock_is_set_back() -> None:
    loop = SimLoop(1)
    clock = SimClock(loop, 1)

    async def wait() -> float:
        queue = ReconcileQueue(clock)
        queue.add_at("a", clock.now() + 100.0)
        getting = asyncio.ensure_future(queue.get())
        await clock.sleep(1.0)
        began = loop.time()
        clock.jump(-3600.0)
        await getting
        return loop.time() - began

    # A timer runs for a minute at most before the clock is looked at again.
    try:
        assert 98.0 < loop.run_until_complete(wait()) < 161.0
    finally:
        loop.close()


def reported(*true: str, gates: tuple[str, ...] = (INPLACE_UPDATE_READY,)) -> Pod:
    kinds = (READY, CONTAINERS_READY, *gates)
    conditions = [condition(kind, "True" if kind in true else "False") for kind in kinds]
    return pod(gates=gates, conditions=conditions)


@pytest.mark.parametrize(
    ("before", "after", "unblocking"),
    [
        (reported(), None, True),
        (reported(CONTAINERS_READY), reported(CONTAINERS_READY, READY), True),
        (reported(READY), reported(READY), False),
        (None, reported(), False),
        # We may have to open the gate now.
        (reported(), reported(CONTAINERS_READY), True),
        (reported(CONTAINERS_READY), reported(CONTAINERS_READY), False),
        (reported(gates=()), reported(CONTAINERS_READY, gates=()), False),
    ],
)
def test_a_change_unblocks_a_node_when_its_pod_is_gone_or_ready_or_waits_for_its_gate(
    before: Pod | None, after: Pod | None, unblocking: bool
) -> None:
    assert unblocks(before, after) is unblocking
