"""Rooms are observed once where it matters, and an error stops no update."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from everynode.api.daemonset import Flavour
from everynode.controller.informers import Informers
from everynode.controller.reporter import Reporter
from everynode.controller.room import Rooms
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.node.room import Room
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError
from tests.support.fleet import NEW, OLD, make, node, pod, revision
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

FORBIDDEN = Response(
    403,
    msgspec.json.encode(
        {
            "kind": "Status",
            "code": 403,
            "reason": "Forbidden",
            "message": 'pods is forbidden: cannot list resource "pods" in API group ""',
        }
    ),
)
NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
FILLER: dict[str, Any] = {
    "metadata": {"uid": "filler"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "880m"}}}]},
}


def _list(*items: dict[str, Any]) -> Response:
    return Response(200, msgspec.json.encode({"metadata": {}, "items": list(items)}))


class Server(WithoutWatches):
    """Answers lists of nodes and pods, and dry runs; None is a broken connection."""

    def __init__(self, pods: Response | None, dry_run: Response | None) -> None:
        self.pods = pods
        self.dry_run = dry_run
        self.asked: list[Request] = []
        self.most_at_once = 0
        self._at_once = 0

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1
        answer = self.dry_run if request.method == "POST" else self.pods
        if request.path == "/api/v1/nodes":
            answer = _list(NODE)
        if answer is None:
            raise TransportError("connection reset", sent=True)
        return answer


class Unknown(Reporter):
    def __init__(self) -> None:
        self.words: list[str] = []

    def room_unknown(self, state: DaemonSetState, node: str, error: KubeError) -> None:
        self.words.append(error.message)


def _sized_container(cpu: str) -> list[dict[str, Any]]:
    return [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]


def _sized(hash: str, cpu: str) -> Any:
    return revision(hash, containers=_sized_container(cpu))


class Stand:
    """A DaemonSet whose requests grow from 100m to 150m, on nodes that have 120m left for it."""

    def __init__(self, pods: Response | None = None, *, dry_run: Response | None = None) -> None:
        self.clock = ManualClock()
        self.server = Server(pods or _list(FILLER), dry_run)
        self.unknown = Unknown()
        names = [f"n{number}" for number in range(20)]
        plan = make(old=_sized(OLD, "100m"), new=_sized(NEW, "150m"), flavour=Flavour.ADVANCED)
        self.state = DaemonSetState(plan.ds, {name: node(name) for name in names})
        for name in names:
            self.state.pod_changed(None, pod(OLD, on=name))
        self.state.set_plan(plan)
        self.informers = Informers((Flavour.ADVANCED,))
        self.rooms = Rooms(
            Client(self.server, self.clock),
            self.clock,
            informers=self.informers,
            queue=ReconcileQueue(self.clock),
            reporter=self.unknown,
        )

    async def observe(self, *nodes: str) -> float:
        started, due_at = self.rooms.start(self.state, nodes, self.clock.now())
        await asyncio.gather(*started)
        return due_at

    def room(self, name: str = "n1") -> Room:
        found = self.state.view(name).room
        assert found is not None
        return found


async def test_a_room_is_observed_by_one_list_of_the_nodes_pods() -> None:
    stand = Stand()
    await stand.observe("n1")
    [shortage] = stand.room().shortages("")
    assert str(shortage) == "Insufficient cpu: 150m needed, 120m free"
    assert [request.method for request in stand.server.asked] == ["POST", "GET", "GET"]


async def test_admission_is_asked_once_for_a_target() -> None:
    spec = {"containers": FILLER["spec"]["containers"], "priority": 9}
    stand = Stand(dry_run=Response(201, msgspec.json.encode({"spec": spec})))
    await stand.observe("n1")
    await stand.observe("n2", "n3")
    dry_runs = [each for each in stand.server.asked if each.method == "POST"]
    assert len(dry_runs) == 1
    assert ("dryRun", "All") in dry_runs[0].query
    assert stand.room("n3").requests == {"cpu": 880}
    assert stand.room("n3").preemptible == {"cpu": 880, "pods": 1}


async def test_a_dry_run_that_fails_leaves_what_the_template_requests() -> None:
    stand = Stand()
    await stand.observe("n1")
    assert stand.room().requests == {"cpu": 150}
    assert stand.unknown.words == []


async def test_few_nodes_are_observed_at_a_time_and_none_twice_at_once() -> None:
    stand = Stand()
    names = [f"n{number}" for number in range(20)]
    started, _ = stand.rooms.start(stand.state, names, stand.clock.now())
    assert len(started) == 20
    assert stand.rooms.start(stand.state, names, stand.clock.now())[0] == []
    await asyncio.gather(*started)
    assert stand.server.most_at_once == 8
    assert stand.state.observing == set()


async def test_a_missing_permission_lets_the_update_go_on_at_once() -> None:
    stand = Stand(FORBIDDEN)
    await stand.observe("n1")
    assert stand.room().unknown
    assert len(stand.unknown.words) == 1
    assert 'cannot list resource "pods"' in stand.unknown.words[0]


async def test_a_list_that_fails_is_repeated_before_the_update_goes_on() -> None:
    stand = Stand()
    stand.server.pods = None
    waits = []
    for _ in range(4):
        await stand.observe("n1")
        assert stand.state.view("n1").room is None
        due_at = await stand.observe("n1")  # it is not due yet
        waits.append(due_at - stand.clock.now())
        await stand.clock.advance(waits[-1])
    assert waits == [1.0, 2.0, 4.0, 8.0]
    await stand.observe("n1")
    assert stand.room().unknown
    assert len(stand.unknown.words) == 1


async def test_a_full_node_is_observed_again_with_the_count_of_the_attempt() -> None:
    stand = Stand()
    await stand.observe("n1")
    await stand.observe("n1")
    assert stand.room().attempt == 2


async def test_a_node_that_had_room_in_between_is_counted_from_the_beginning() -> None:
    stand = Stand()
    await stand.observe("n1")
    stand.server.pods = _list()
    await stand.observe("n1")
    stand.server.pods = _list(FILLER)
    await stand.observe("n1")
    assert stand.room().attempt == 1


async def test_of_two_daemonsets_that_grow_the_second_allows_for_the_first() -> None:
    half = {"metadata": {"uid": "half"}, "spec": {"containers": _sized_container("800m")}}
    first, second = Stand(_list(half)), Stand()
    second.rooms = first.rooms
    second.state.key = "second"
    for stand in (first, second):
        first.informers.states[stand.state.key] = stand.state
    first.informers.nodes.replace([node("n1")], "1")
    await first.observe("n1")
    assert first.room().shortages("") == ()
    await second.observe("n1")
    [shortage] = second.room().shortages("")
    assert str(shortage) == "Insufficient cpu: 150m needed, 50m free"
    await first.clock.advance(60.0)  # it was not taken
    await second.observe("n1")
    assert second.room().shortages("") == ()


async def test_a_daemonset_that_is_gone_is_forgotten() -> None:
    stand = Stand()
    stand.server.pods = None
    await stand.observe("n1")
    assert await stand.observe("n1") < float("inf")
    stand.rooms.forget(stand.state)
    await stand.observe("n1")
    assert len([each for each in stand.server.asked if each.path == "/api/v1/pods"]) == 2
