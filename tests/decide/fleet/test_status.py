from __future__ import annotations

import pytest

from everynode.api.daemonset import DaemonSetStatus, Flavour, UpdateStrategy, UpdateStrategyType
from everynode.decide.fleet.status import build_status
from everynode.decide.node.assessment import NodeCounts
from everynode.decide.view import NodeView
from tests.support.fleet import GPU, NEW, NOW, OLD, decide, make, node, pod, see

TAINTED = node("n1", taints=(GPU,))
ON_DELETE = UpdateStrategy(type=UpdateStrategyType.ON_DELETE)


@pytest.mark.parametrize(
    ("view", "counted"),
    [
        (see("n1"), "desired"),
        (see("n1", pod(NEW)), "desired current ready updated available"),
        (see("n1", pod(OLD)), "desired current ready available"),
        (see("n1", pod(NEW, ready=False)), "desired current updated"),
        (see("n1", pod(NEW, scheduled=False)), "desired current updated"),
        (see("n1", pod(NEW, since=NOW - 1)), "desired current ready updated"),
        (see("n1", pod(OLD, deleting=NOW)), "desired current ready"),
        (see("n1", pod(NEW, phase="Failed")), "desired current updated"),
        (see("n1", pod(NEW, phase="Failed", deleting=NOW)), "desired"),
        (see(TAINTED), ""),
        (see(TAINTED, pod(NEW)), "misscheduled"),
        (NodeView("n1", None, (pod(NEW),)), ""),
        # The senior of two stands for the node.
        (see("n1", pod(OLD), pod(NEW, created=NOW - 9)), "desired current ready available"),
        (see(node("n1", ready="Unknown"), pod(OLD, ready=False)), "desired current"),
    ],
)
def test_each_node_is_counted_by_its_senior_pod(view: NodeView, counted: str) -> None:
    status = decide(make(strategy=ON_DELETE, min_ready_seconds=5), [view]).status
    names = ("desired", "current", "misscheduled", "ready", "updated", "available")
    assert [name for name in names if getattr(status, name)] == [
        name for name in names if name in counted.split()
    ]
    assert status.unavailable == status.desired - status.available


def test_the_status_says_which_generation_and_revision_it_is_about() -> None:
    plan = make(metadata={"generation": 7}, flavour=Flavour.ADVANCED)
    status = decide(plan, []).status
    assert (status.observed_generation, status.update_revision) == (7, NEW)


def test_the_native_status_has_no_place_for_a_revision() -> None:
    assert decide(make(), []).status.update_revision == ""


def test_an_observed_generation_above_the_generation_is_put_right() -> None:
    # Written by another client, or restored from a backup.
    before = DaemonSetStatus(observed_generation=9)
    assert decide(make(), [], status=before).status.observed_generation == 2


def test_the_collision_count_is_kept() -> None:
    before = DaemonSetStatus(collision_count=3)
    assert decide(make(), [], status=before).status.collision_count == 3


def test_a_status_that_says_the_same_is_the_observed_one() -> None:
    plan = make()
    first = build_status(plan, NodeCounts(desired=3, available=2), DaemonSetStatus(), ())
    assert first.unavailable == 1
    assert build_status(plan, NodeCounts(desired=3, available=2), first, ()) is first
