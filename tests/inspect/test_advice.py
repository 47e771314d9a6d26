from __future__ import annotations

import pytest

from everynode.api.daemonset import UpdateStrategy
from everynode.inspect.advice import advice
from everynode.inspect.fleet import NodeRow, NodeStanding
from tests.support.samples import advanced, template

HELD = NodeRow(node="n", standing=NodeStanding.HELD, reason="Held", pod="p")


def waiting(reason: str, pod: str = "p") -> NodeRow:
    return NodeRow(node="n", standing=NodeStanding.WAITING, reason=reason, pod=pod)


@pytest.mark.parametrize(
    ("row", "first"),
    [
        (waiting("ImagePullBackOff"), "everynode history ads/agent -n system"),
        (waiting("NodeNotReady"), "kubectl describe node n"),
        (waiting("InsufficientResources"), "kubectl describe node n"),
        (waiting("Unschedulable"), "kubectl describe pod p -n system"),
        (waiting("CrashLoopBackOff"), "everynode logs ads/agent -n system --node n"),
        (waiting("Refused", pod=""), "kubectl describe ads agent -n system"),
        (
            NodeRow(node="n", standing=NodeStanding.QUEUED, reason="OnDelete", pod="p"),
            "kubectl delete pod p -n system",
        ),
        (
            NodeRow(node="n", standing=NodeStanding.UPDATING, reason="Starting"),
            "everynode status ads/agent -n system --watch",
        ),
    ],
)
def test_the_first_command_fits_the_reason(row: NodeRow, first: str) -> None:
    assert advice(advanced(template()), row, ())[0] == first


def test_commands_of_this_program_are_preferred() -> None:
    ds = advanced(template())
    paused = advanced(template(), strategy=UpdateStrategy(paused=True))
    assert advice(ds, HELD, ("partition",)) == ["everynode partition ads/agent -n system 0"]
    assert advice(paused, HELD, ("resume",)) == ["everynode resume ads/agent -n system"]
    assert advice(paused, HELD, ())[0].startswith("kubectl patch ads agent -n system --type=merge")
    assert advice(ds, waiting("ErrImagePull"), ("undo",))[-1] == (
        "everynode undo ads/agent -n system"
    )


def test_a_node_that_is_done_needs_nothing() -> None:
    done = NodeRow(node="n", standing=NodeStanding.UPDATED)
    assert advice(advanced(template()), done, ()) == []
