"""A status is written once when it has changed; changes of counts alone are combined."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.api.objects import Condition
from everynode.controller.reporter import Reporter
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.controller.status import COUNTS_DELAY, WRITE_INTERVAL, StatusConflicts, StatusWriter
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches


class Server(WithoutWatches):
    """Answers every write with the next version."""

    def __init__(self) -> None:
        self.version = 100
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.version += 1
        self.asked.append(request)
        return Response(200, b'{"metadata":{"resourceVersion":"%d"}}' % self.version)


class Undisturbed(Reporter):
    def status_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        raise AssertionError(error)

    def status_conflict(self, state: DaemonSetState, seconds: float) -> None:
        raise AssertionError("no other client writes here")


class Conflicting(Reporter):
    def __init__(self) -> None:
        self.told: list[float] = []

    def status_conflict(self, state: DaemonSetState, seconds: float) -> None:
        self.told.append(seconds)


class Stand:
    def __init__(self, reporter: Reporter | None = None) -> None:
        self.clock = ManualClock()
        self.server = Server()
        self.reporter = reporter or Undisturbed()
        self.conflicts: StatusConflicts = {}
        self.queue = ReconcileQueue(self.clock)
        self.state = DaemonSetState(make().ds, {})
        self.begin_term()
        self.see(version=100)

    def begin_term(self) -> None:
        self.statuses = StatusWriter(
            Client(self.server, self.clock),
            self.clock,
            queue=self.queue,
            reporter=self.reporter,
            conflicts=self.conflicts,
        )

    def see(self, *, version: int, ready: int = 0) -> bool:
        """What the watch shows; whether that is worth a look."""
        ds: DaemonSet = self.state.ds
        meta = msgspec.structs.replace(ds.metadata, resource_version=str(version))
        status = DaemonSetStatus(ready=ready)
        after = self.state.ds = msgspec.structs.replace(ds, metadata=meta, status=status)
        return self.statuses.observe(ds, after, self.state)

    def wait(self, ready: int) -> float | None:
        """How long such a status has to wait; None where there is nothing to write."""
        due_at = self.statuses.due_at(self.state, DaemonSetStatus(ready=ready))
        return None if due_at is None else max(0.0, due_at - self.clock.now())

    async def write(self, ready: int) -> None:
        await self.statuses.write(self.state, DaemonSetStatus(ready=ready))


async def test_what_is_there_already_is_not_written() -> None:
    stand = Stand()
    assert stand.wait(ready=0) is None
    assert stand.wait(ready=1) == COUNTS_DELAY


async def test_what_was_written_is_not_written_again_before_it_could_be_seen() -> None:
    stand = Stand()
    await stand.write(ready=1)
    assert stand.wait(ready=1) == 20.0
    assert stand.wait(ready=2) == COUNTS_DELAY
    stand.see(version=101, ready=1)
    assert stand.wait(ready=1) is None


async def test_what_is_never_seen_is_written_again() -> None:
    stand = Stand()
    await stand.write(ready=1)
    stand.see(version=50, ready=0)  # the server was restored from a backup
    await stand.clock.advance(20.0)
    assert stand.wait(ready=1) == 0.0


async def test_a_status_goes_by_the_daemonset_from_which_it_was_worked_out() -> None:
    stand = Stand()
    writing = stand.statuses.write(stand.state, DaemonSetStatus(ready=1))
    stand.see(version=105)  # reporter writes a condition before the request is on its way
    await writing
    (request,) = stand.server.asked
    assert msgspec.json.decode(request.body)["metadata"]["resourceVersion"] == "100"


# --- What waits --------------------------------------------------------------------------------

RUNNING = (Condition("Complete", "False", "RollingOut", "1 of 3 nodes are updated"),)
DONE = (Condition("Complete", "True", "Done", "3 of 3 nodes are updated"),)
SHOWN = DaemonSetStatus(
    observed_generation=1, desired=3, updated=1, available=3, conditions=RUNNING
)


class Rollout(Stand):
    """A rollout of which one status was written."""

    def __init__(self) -> None:
        super().__init__()
        self.state.ds = msgspec.structs.replace(self.state.ds, status=SHOWN)

    def wait_for(self, **changed: Any) -> float | None:
        """How long the status waits once this has changed."""
        due_at = self.statuses.due_at(self.state, msgspec.structs.replace(SHOWN, **changed))
        return None if due_at is None else max(0.0, due_at - self.clock.now())


async def test_that_the_last_pod_is_updated_is_told_at_once() -> None:
    assert Rollout().wait_for(updated=2) == COUNTS_DELAY
    assert Rollout().wait_for(updated=3, available=2) == 0.0


def test_what_reporter_waits_for_is_written_at_once() -> None:
    rollout = Rollout()
    assert rollout.wait_for(observed_generation=2) == 0
    assert rollout.wait_for(desired=4) == 0
    assert rollout.wait_for(updated=3, conditions=DONE) == 0


async def test_a_number_that_moves_waits_a_moment_from_its_first_move() -> None:
    rollout = Rollout()
    first = rollout.wait_for(available=2)
    await rollout.clock.advance(COUNTS_DELAY / 2)
    assert (first, rollout.wait_for(available=1)) == (COUNTS_DELAY, COUNTS_DELAY / 2)


async def test_a_number_that_is_back_at_once_is_not_written_at_all() -> None:
    rollout = Rollout()
    rollout.wait_for(available=2)
    await rollout.clock.advance(COUNTS_DELAY / 2)
    assert (rollout.wait_for(), rollout.wait_for(available=2)) == (None, COUNTS_DELAY)


async def test_in_a_large_fleet_numbers_wait_for_each_other_and_words_do_not() -> None:
    rollout = Rollout()
    large = {"desired": 5000, "available": 5000}
    written = msgspec.structs.replace(SHOWN, updated=2, **large)
    await rollout.statuses.write(rollout.state, written)
    rollout.state.ds = msgspec.structs.replace(rollout.state.ds, status=written)
    assert rollout.wait_for(updated=3, **large) == 2.0
    assert rollout.wait_for(updated=5000, conditions=DONE, **large) == WRITE_INTERVAL


async def test_the_watch_event_of_an_own_status_write_causes_no_reconcile() -> None:
    stand = Stand()
    stand.wait(ready=1)
    await stand.write(ready=1)
    assert stand.see(version=101, ready=1) is False
    assert not stand.queue._due_at


async def test_a_status_decided_during_another_write_is_written_afterwards() -> None:
    stand = Stand()
    stand.wait(ready=1)
    writing = stand.statuses.write(stand.state, DaemonSetStatus(ready=1))
    assert stand.wait(ready=2) is None  # not beside the other
    await writing
    assert stand.queue._due_at == {stand.state.key: stand.clock.now() + WRITE_INTERVAL}
    assert stand.see(version=101, ready=1) is True


# --- What another writes -----------------------------------------------------------------------


@pytest.mark.parametrize("by", [-5.0, 3600.0])
async def test_a_status_back_off_keeps_its_length_when_the_clock_is_set(by: float) -> None:
    reporter = Conflicting()
    stand = Stand(reporter)
    stand.see(version=101, ready=7)
    await stand.clock.advance(20.0)
    stand.clock.jump(by)
    assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + 40.0
    stand.begin_term()
    assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + 40.0
    await stand.clock.advance(40.0)
    assert stand.statuses.backing_off_until(stand.state) == 0.0
    assert reporter.told == [60.0, 0.0]


async def test_the_pause_grows_while_another_manager_keeps_writing_the_status() -> None:
    stand = Stand(Conflicting())
    stand.see(version=101, ready=7)
    await stand.clock.advance(60.0)
    assert stand.statuses.backing_off_until(stand.state) == 0.0
    stand.see(version=102, ready=8)
    assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + 120.0


async def test_further_writes_during_a_pause_extend_it_and_do_not_double_it() -> None:
    stand = Stand(Conflicting())
    for ready in range(7, 17):
        stand.see(version=101 + ready, ready=ready)
        assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + 60.0
        await stand.clock.advance(20.0)
    await stand.clock.advance(40.0)
    assert stand.statuses.backing_off_until(stand.state) == 0.0


@pytest.mark.parametrize(
    ("quiet", "pause"),
    [(0.0, 480.0), (239.0, 480.0), (240.0, 240.0), (360.0, 120.0), (420.0, 60.0), (9e9, 60.0)],
)
async def test_a_quiet_time_as_long_as_the_pause_halves_the_next_one(
    quiet: float, pause: float
) -> None:
    stand = Stand(Conflicting())
    for number, seconds in enumerate((60.0, 120.0, 240.0)):
        stand.see(version=101 + number, ready=7 + number)
        assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + seconds
        await stand.clock.advance(seconds)
        assert stand.statuses.backing_off_until(stand.state) == 0.0
    await stand.clock.advance(quiet)
    stand.see(version=110, ready=1)
    assert stand.statuses.backing_off_until(stand.state) == stand.clock.now() + pause


async def test_a_status_back_off_ends_with_its_daemonset() -> None:
    stand = Stand(Conflicting())
    stand.see(version=101, ready=7)
    stand.statuses.forget(stand.state)
    assert stand.statuses.backing_off_until(stand.state) == 0.0
