"""What the condition says of nodes that have no room."""

from __future__ import annotations

import pytest

from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.api.objects import Condition
from everynode.inspect.reported_rooms import ReportedRooms
from tests.support.fleet import NEW, NOW
from tests.support.samples import advanced, template


def _said(message: str, status: str = "False") -> DaemonSet:
    condition = Condition("Progressing", status, message=message)
    return advanced(template(), status=DaemonSetStatus(conditions=(condition,)))


def _full(ds: DaemonSet, *nodes: str) -> list[str]:
    reported = ReportedRooms(ds)
    return [node for node in nodes if reported.room_of(node, NEW, NOW) is not None]


def test_named_nodes_have_no_room() -> None:
    ds = _said("2 nodes wait: 1 Hook (n1), 1 InsufficientResources (n2); of 9 nodes 3 to come")
    assert ReportedRooms(ds).some
    assert _full(ds, "n1", "n2", "n3") == ["n2"]
    room = ReportedRooms(ds).room_of("n2", NEW, NOW)
    assert room is not None
    assert (room.revision, room.reported) == (NEW, "the controller found no room for the new pod")


@pytest.mark.parametrize(("status", "full"), [("False", ["n1", "n9"]), ("True", ["n1"])])
def test_where_nothing_moves_the_nodes_that_are_not_named_have_none_either(
    status: str, full: list[str]
) -> None:
    ds = _said("5 nodes wait: 5 InsufficientResources (n1, n2, n3, …); of 9 nodes …", status)
    assert _full(ds, "n1", "n9") == full


def test_without_such_a_word_nothing_is_known() -> None:
    assert not ReportedRooms(_said("1 node waits: 1 Hook (n1)")).some
    assert not ReportedRooms(advanced(template())).some
    assert _full(_said("all is well"), "n1") == []
