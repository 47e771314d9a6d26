"""A reader works out what is missing on nodes that the controller found to be full."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.daemonset import DaemonSetStatus, UpdateStrategy
from everynode.api.objects import Condition
from everynode.inspect.fleet import NodeRow, NodeStanding, RolloutState
from everynode.inspect.rooms import evaluate_with_rooms
from everynode.inspect.snapshot import Snapshot
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.support.fleet import NOW, OLD, node, pod, template
from tests.support.samples import advanced
from tests.support.scripted_server import ManualClock

FORBIDDEN = msgspec.json.encode({"kind": "Status", "code": 403, "reason": "Forbidden"})


def _containers(cpu: str) -> list[dict[str, Any]]:
    return [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]


class Server:
    """One node of 1 cpu, on which other pods request this much; or a reader without rights."""

    def __init__(self, used: str) -> None:
        self.used = used
        self.asked: list[str] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(f"{request.path} {dict(request.query)['fieldSelector']}")
        if not self.used:
            return Response(403, FORBIDDEN)
        item: dict[str, Any] = {"status": {"allocatable": {"cpu": "1"}}}
        if request.path == "/api/v1/pods":
            item = {"metadata": {"uid": "other"}, "spec": {"containers": _containers(self.used)}}
        return Response(200, msgspec.json.encode({"metadata": {}, "items": [item]}))

    async def open(self, request: Request) -> Stream:
        raise AssertionError("there is no watch here")

    async def close(self) -> None:
        pass


async def _rows(
    server: Server, message: str, *, status: str = "False"
) -> tuple[RolloutState, list[NodeRow]]:
    condition = Condition("Progressing", status, message=message)
    ds = advanced(
        template(containers=_containers("150m")),
        strategy=UpdateStrategy(),
        status=DaemonSetStatus(observed_generation=1, conditions=(condition,)),
    )
    names = ("n1", "n2")
    nodes = tuple(node(name) for name in names)
    pods = tuple(pod(OLD, on=name) for name in names)
    client = Client(server, ManualClock())
    evaluation = await evaluate_with_rooms(client, Snapshot(ds, nodes, pods, ()), NOW)
    return evaluation.fleet.state, list(evaluation.fleet.rows)


async def test_what_is_missing_is_worked_out_for_nodes_that_wait_for_room() -> None:
    server = Server(used="880m")
    state, rows = await _rows(server, "2 nodes wait: 2 InsufficientResources (n1, n2); of 2 nodes")
    assert state is RolloutState.WAITING
    assert [row.standing for row in rows] == [NodeStanding.WAITING] * 2
    assert rows[0].reason == "InsufficientResources"
    assert rows[0].message == "Insufficient cpu: 150m needed, 120m free"
    assert len(server.asked) == 4
    assert "/api/v1/nodes metadata.name=n1" in server.asked


async def test_a_node_that_has_room_again_waits_for_its_turn() -> None:
    _, rows = await _rows(Server(used="10m"), "1 node waits: 1 InsufficientResources (n1); of")
    assert [row.reason for row in rows] == ["Turn", "Turn"]


async def test_a_reader_without_the_right_learns_what_the_controller_said() -> None:
    _, rows = await _rows(Server(used=""), "1 node waits: 1 InsufficientResources (n1); of 2")
    assert [(row.reason, row.message) for row in rows] == [
        ("InsufficientResources", "the controller found no room for the new pod"),
        ("Turn", "waits for its turn"),
    ]


async def test_nothing_is_read_where_no_node_waits_for_room() -> None:
    server = Server(used="880m")
    _, rows = await _rows(server, "of 2 nodes 0 updated and available, 2 to come", status="True")
    assert server.asked == []
    assert {row.reason for row in rows} == {"Turn"}
