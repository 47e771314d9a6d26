"""Leader election against the embedded API server, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.api.objects import Lease
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.controller.leader import AlwaysLeader, Election, LeaseTimes
from everynode.kube import verbs
from everynode.kube.client import WRITE_SECONDS, Client
from everynode.kube.requests import Request, Response
from everynode.kube.resources import LEASES
from everynode.kube.transport import TransportError
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

NAMESPACE = "kube-system"


class Wire(WithoutWatches):
    """A way to the server that can fail: cut, answers lost or late, or everything held up."""

    def __init__(self, api: Api, clock: ManualClock) -> None:
        self._inner = LocalTransport(api)
        self._clock = clock
        self.fault = ""

    async def send(self, request: Request) -> Response:
        if self.fault == "cut":
            raise TransportError("connection refused", sent=False)
        if self.fault == "slow":
            await self._clock.sleep(request.timeout)
            raise TransportError("no answer in time", sent=True)
        response = await self._inner.send(request)
        if self.fault == "lost":
            raise TransportError("connection reset", sent=True)
        if self.fault == "late":
            await self._clock.sleep(request.timeout - 0.5)
        return response


class Scene:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.api = Api(clock=self.clock)
        self.wires: list[Wire] = []
        self.electors: list[Election] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self) -> Election:
        wire = Wire(self.api, self.clock)
        elector = Election(
            wire, self.clock, identity=f"process-{len(self.wires)}", namespace=NAMESPACE
        )
        self.wires.append(wire)
        self.electors.append(elector)
        self.tasks.append(asyncio.ensure_future(elector.run()))
        await self.clock.quiet()
        return elector

    async def lease(self) -> Lease:
        client = Client(LocalTransport(self.api), self.clock)
        request = verbs.get(LEASES, "everynode", namespace=NAMESPACE)
        return await client.read(request, msgspec.json.Decoder(Lease).decode)


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    scene = Scene()
    try:
        yield scene
    finally:
        for task in scene.tasks:
            task.cancel()
        await asyncio.wait(scene.tasks)


def leads(elector: Election) -> bool:
    """Whether the process may write."""
    return elector.write_budget_seconds() > 0


async def settled() -> None:
    """There are no writes to wait for."""


async def test_the_first_process_leads_and_keeps_the_lease() -> None:
    async with a_scene() as scene:
        elector = await scene.start()
        assert leads(elector)
        for _ in range(60):
            await scene.clock.advance(1)
            assert 0 < elector.write_budget_seconds() <= WRITE_SECONDS
        lease = await scene.lease()
        assert lease.spec.holder_identity == "process-0"
        assert (lease.spec.lease_transitions, lease.spec.lease_duration_seconds) == (0, 15)
        assert lease.spec.renew_time is not None
        assert lease.spec.renew_time.timestamp() >= scene.clock.now() - 2


async def test_another_process_waits_while_the_lease_is_renewed() -> None:
    async with a_scene() as scene:
        await scene.start()
        follower = await scene.start()
        await scene.clock.advance(120)
        assert not leads(follower)
        assert follower.write_budget_seconds() == 0
        assert follower.holder == "process-0"


async def test_leader_that_is_cut_off_stops_long_before_another_begins() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        follower = await scene.start()
        await scene.clock.advance(5)
        scene.wires[0].fault = "cut"
        over = 0.0
        while not leads(follower):
            now = scene.clock.monotonic()
            permitted = leader.write_budget_seconds()
            over = max(over, now + permitted if permitted else 0.0)
            await scene.clock.advance(0.25)
        assert scene.clock.monotonic() > over
        assert not leads(leader)
        await asyncio.wait_for(leader.lost(), 1)
        assert (await scene.lease()).spec.lease_transitions == 1


async def test_renewal_counts_from_when_it_was_asked_not_from_when_it_was_answered() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        scene.wires[0].fault = "late"
        await scene.clock.advance(2 + 6.5)
        assert leader.write_budget_seconds() == 14 - 6.5


async def test_leader_alone_leads_again_when_the_server_is_back() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        scene.wires[0].fault = "cut"
        await scene.clock.advance(1800)
        await asyncio.wait_for(leader.lost(), 1)
        scene.wires[0].fault = ""
        await scene.clock.advance(2)
        assert leads(leader)


async def test_a_write_begun_late_gets_what_is_left_of_the_lease() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        scene.wires[0].fault = "cut"
        seen = []
        for _ in range(11):
            seen.append(leader.write_budget_seconds())
            await scene.clock.advance(1)
        assert seen == [10, 10, 10, 10, 10, 9, 8, 7, 6, 5, 4]
        assert leader.write_budget_seconds() == 0


async def test_renewal_of_unknown_outcome_does_not_end_the_lead() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        scene.wires[0].fault = "lost"
        await scene.clock.advance(5)
        scene.wires[0].fault = ""
        await scene.clock.advance(4)
        assert leads(leader)
        await scene.clock.advance(30)
        assert leads(leader)


async def test_sleeping_machine_does_not_write_when_it_wakes() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        assert leads(leader)
        scene.clock.jump(60)
        assert leader.write_budget_seconds() == 0
        await scene.clock.advance(3)
        assert leads(leader)


async def test_wall_clock_that_goes_back_changes_nothing() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        follower = await scene.start()
        scene.clock.jump(-3600)
        await scene.clock.advance(60)
        assert leads(leader)
        assert not leads(follower)


async def test_clean_shutdown_hands_over_within_two_seconds_but_after_the_last_write() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        follower = await scene.start()
        answered = asyncio.Event()

        async def settle() -> None:
            await answered.wait()

        resigning = asyncio.ensure_future(leader.resign(settle))
        await scene.clock.advance(30)
        assert leader.write_budget_seconds() == 0
        assert follower.write_budget_seconds() == 0
        answered.set()
        await scene.clock.quiet()
        assert resigning.done()
        await scene.clock.advance(2)
        assert leads(follower)
        assert (await scene.lease()).spec.holder_identity == "process-1"
        assert scene.tasks[0].done()


async def test_follower_that_shuts_down_leaves_the_lease_alone() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        follower = await scene.start()
        await follower.resign(settled)
        await scene.clock.advance(60)
        assert leads(leader)
        assert (await scene.lease()).spec.lease_transitions == 0


async def test_leader_whose_lease_is_removed_steps_down_and_may_lead_again() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        client = Client(LocalTransport(scene.api), scene.clock)
        await client.write(verbs.delete(LEASES, "everynode", namespace=NAMESPACE), bytes)
        lost = asyncio.ensure_future(leader.lost())
        await scene.clock.advance(2)
        assert lost.done()
        await scene.clock.advance(2)
        assert leads(leader)


async def test_lease_kept_by_others_fields_survive_our_renewals() -> None:
    async with a_scene() as scene:
        leader = await scene.start()
        client = Client(LocalTransport(scene.api), scene.clock)
        patch = verbs.patch(
            LEASES, "everynode", {"metadata": {"labels": {"a": "b"}}}, namespace=NAMESPACE
        )
        await client.write(patch, bytes)
        await scene.clock.advance(20)
        assert leads(leader)
        assert (await scene.lease()).metadata.labels == {"a": "b"}


@contextmanager
def lines(level: int = logging.INFO) -> Iterator[list[str]]:
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            fields = getattr(record, "fields", {})
            found.append(f"{record.getMessage()} {dict(fields)}")

    logger, handler = logging.getLogger("everynode.leader"), Keep()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


async def test_an_error_is_reported_once_and_retried() -> None:
    with lines(logging.WARNING) as found:
        async with a_scene() as scene:
            wire = Wire(scene.api, scene.clock)
            elector = Election(wire, scene.clock, identity="x", namespace="nowhere")
            scene.tasks.append(asyncio.ensure_future(elector.run()))
            await scene.clock.advance(30)
    assert len(found) == 1
    assert "create leases.coordination.k8s.io in namespace nowhere" in found[0]


@pytest.mark.parametrize("terms", [(10, 10, 2), (15, 14.5, 2), (15, 2, 2), (15, 10, 0)])
def test_terms_that_cannot_be_safe_are_refused(terms: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="longer than its renew deadline"):
        LeaseTimes(*terms)


async def test_without_election_we_lead_until_we_resign() -> None:
    leadership = AlwaysLeader()
    await leadership.elected()
    assert leadership.write_budget_seconds() == WRITE_SECONDS
    await leadership.resign(settled)
    assert leadership.write_budget_seconds() == 0
    await leadership.lost()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1]),
            st.sampled_from(["", "cut", "lost", "slow", "late"]),
            st.floats(0.5, 20),
        ),
        max_size=8,
    )
)
@settings(max_examples=25)
def test_whatever_fails_no_two_processes_may_write_at_the_same_time(
    script: list[tuple[int, str, float]],
) -> None:
    asyncio.run(run_script(script))


async def run_script(script: list[tuple[int, str, float]]) -> None:
    async with a_scene() as scene:
        electors = [await scene.start(), await scene.start()]
        over = [0.0, 0.0]  # when the last write each may have begun is over
        for who, fault, seconds in script:
            scene.wires[who].fault = fault
            end = scene.clock.monotonic() + seconds
            while scene.clock.monotonic() < end:
                now = scene.clock.monotonic()
                permits = [elector.write_budget_seconds() for elector in electors]
                for mine, other in ((0, 1), (1, 0)):
                    if permits[mine]:
                        assert now > over[other]
                        over[mine] = now + permits[mine]
                await scene.clock.advance(0.5)
        for wire in scene.wires:
            wire.fault = ""
        await scene.clock.advance(40)
        assert sum(leads(elector) for elector in electors) == 1


async def test_a_lease_with_numbers_beyond_all_bounds_is_taken_over_all_the_same() -> None:
    async with a_scene() as scene:
        client = Client(LocalTransport(scene.api), scene.clock)
        spec = {
            "holderIdentity": "dead",
            "leaseDurationSeconds": 2**31 - 1,
            "leaseTransitions": 2**31 - 1,
            "renewTime": "9999-12-31T23:59:59.000000Z",
        }
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": "everynode", "namespace": NAMESPACE},
            "spec": spec,
        }
        await client.write(verbs.create(LEASES, body, namespace=NAMESPACE), bytes)
        elector = await scene.start()
        assert elector.write_budget_seconds() == 0
        await scene.clock.advance(3610)
        assert elector.write_budget_seconds() > 0
        assert (await scene.lease()).spec.lease_transitions == 2**31 - 1
