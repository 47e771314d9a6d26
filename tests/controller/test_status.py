"""A status is written when it has changed, and once."""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.controller.status import Statuses
from everynode.controller.workload import Workload
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.decide.fleet import make
from tests.kube.scripted import ManualClock


class Server:
    """Answers every write with the next version."""

    def __init__(self) -> None:
        self.version = 100

    async def send(self, request: Request) -> Response:
        self.version += 1
        return Response(200, b'{"metadata":{"resourceVersion":"%d"}}' % self.version)

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nobody watches here")

    async def close(self) -> None:
        pass


class Nobody:
    def status_refused(self, workload: Workload, error: KubeError) -> None:
        raise AssertionError(error)

    def contested(self, workload: Workload, seconds: float) -> None:
        raise AssertionError("nobody else writes here")


class Stand:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.statuses = Statuses(
            Client(Server(), self.clock), self.clock, again=lambda *_: None, teller=Nobody()
        )
        self.workload = Workload(make().ds, {})
        self.see(version=100)

    def see(self, *, version: int, ready: int = 0) -> None:
        """What the watch shows."""
        ds: DaemonSet = self.workload.ds
        meta = msgspec.structs.replace(ds.metadata, resource_version=str(version))
        status = DaemonSetStatus(ready=ready)
        self.workload.ds = msgspec.structs.replace(ds, metadata=meta, status=status)

    def wait(self, ready: int) -> float | None:
        """How long such a status has to wait; None where there is nothing to write."""
        due_at = self.statuses.due_at(self.workload, DaemonSetStatus(ready=ready))
        return None if due_at is None else max(0.0, due_at - self.clock.now())

    async def write(self, ready: int) -> None:
        await self.statuses.write(self.workload, DaemonSetStatus(ready=ready))


async def test_what_is_there_already_is_not_written() -> None:
    stand = Stand()
    assert stand.wait(ready=0) is None
    assert stand.wait(ready=1) == 0.0


async def test_what_was_written_is_not_written_again_before_it_could_be_seen() -> None:
    stand = Stand()
    await stand.write(ready=1)
    assert stand.wait(ready=1) == 20.0
    assert stand.wait(ready=2) == 0.5
    stand.see(version=101, ready=1)
    assert stand.wait(ready=1) is None


async def test_what_is_never_seen_is_written_again() -> None:
    stand = Stand()
    await stand.write(ready=1)
    stand.see(version=50, ready=0)  # the server was restored from a backup
    await stand.clock.advance(20.0)
    assert stand.wait(ready=1) == 0.0
