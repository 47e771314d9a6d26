from __future__ import annotations

from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.daemonset import IntOrPercent, UpdateStrategy
from everynode.api.times import format_time
from everynode.decide.inplace.state import InPlaceState, LastStatus, write_state
from everynode.decide.node.assessment import NodeCounts
from everynode.decide.node.node_state import held_revision
from everynode.decide.pods.own_pods import OwnPods
from everynode.decide.view import NodeView, OwnWrite, WriteKind
from tests.support.fleet import GPU, NEW, NOW, OLD, assess, make, node, pod, revision, see

SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}
SILENT = node("n1", ready="Unknown")


def cost(view: NodeView, **more: Any) -> tuple[int, int, int]:
    made = assess(more.pop("plan", make()), view, **more).counts
    return made.down, made.under_way, made.target_available


def lost(view: NodeView) -> tuple[int, int, int, int]:
    made: NodeCounts = assess(make(), view).counts
    assert (made.down, made.under_way, made.target_available) == (0, 0, 0)
    return (
        made.unreachable,
        made.unreachable_down,
        made.unreachable_under_way,
        made.unreachable_after_update,
    )


def test_an_available_pod_keeps_its_node_up() -> None:
    assert cost(see("n1", pod(OLD))) == (0, 0, 0)
    assert cost(see("n1", pod(NEW))) == (0, 0, 1)


def test_a_node_emptied_for_the_target_is_down_and_under_way() -> None:
    emptied = [
        see("n1"),
        see("n1", pod(OLD, deleting=NOW)),
        see("n1", pod(OLD, labels=PREPARING)),
        see("n1", pod(OLD, phase="Failed")),
    ]
    assert [cost(view) for view in emptied] == [(1, 1, 0)] * 4


def test_a_target_that_is_not_available_is_down_and_under_way() -> None:
    assert cost(see("n1", pod(NEW, ready=False, created=NOW - 9))) == (1, 1, 0)


def test_an_old_pod_that_is_not_ready_is_down_but_not_under_way() -> None:
    assert cost(see("n1", pod(OLD, ready=False))) == (1, 0, 0)


def test_a_held_node_costs_nothing() -> None:
    assert cost(see("n1"), in_scope=False) == (0, 0, 0)


def test_a_node_that_should_have_no_pod_is_not_down() -> None:
    assert cost(see(node("n1", taints=(GPU,)))) == (0, 0, 0)
    assert cost(see(node("n1", taints=(GPU,)), pod(OLD, ready=False))) == (0, 0, 0)


def test_a_misplaced_pod_costs_nothing_whatever_its_state() -> None:
    plan = make(new=revision(NEW, nodeSelector={"disk": "ssd"}))
    assert cost(see("n1", pod(NEW, ready=False)), plan=plan) == (0, 0, 0)


def test_a_pod_updated_in_place_has_its_time_from_then_on() -> None:
    recent = InPlaceState(
        revision=NEW, update_timestamp=format_time(NOW - 10), next_container_images={}
    )
    waiting = {"agent": LastStatus("sha256:old")}
    state = msgspec.structs.replace(recent, last_container_statuses=waiting)
    made = pod(NEW, ready=False, created=NOW - 9999)
    annotations = msgspec.structs.replace(
        made.metadata.annotations, inplace_state=write_state(state)
    )
    meta = msgspec.structs.replace(made.metadata, annotations=annotations)
    assert cost(see("n1", msgspec.structs.replace(made, metadata=meta))) == (1, 1, 0)
    assert cost(see("n1", made)) == (1, 0, 0)


def test_a_tainted_node_on_its_way_to_the_target_is_down() -> None:
    tainted = node("n1", taints=(GPU,))
    touched = OwnWrite(WriteKind.PATCH, uid="uid-agent-n1-v1")
    assert cost(see(tainted, pod(OLD), writes=(touched,))) == (1, 1, 0)
    assert cost(see(tainted, pod(NEW, ready=False, created=NOW - 9))) == (1, 1, 0)


def test_a_silent_node_is_counted_apart() -> None:
    assert lost(see(SILENT, pod(OLD, ready=False))) == (1, 1, 0, 0)
    assert lost(see(SILENT, pod(OLD))) == (1, 0, 0, 0)
    assert lost(see(SILENT, pod(NEW, ready=False, created=NOW - 9))) == (1, 1, 1, 1)
    assert lost(see(SILENT, pod(NEW, ready=False, created=NOW - 999))) == (1, 1, 0, 1)


def test_a_failing_target_that_is_replaced_again_and_again_gets_its_time_each_time() -> None:
    young = pod(NEW, phase="Failed", created=NOW - 299, ended=NOW)
    old = pod(NEW, phase="Failed", created=NOW - 300, ended=NOW)
    assert cost(see("n1", young)) == (1, 1, 0)
    assert cost(see("n1", old)) == (1, 0, 0)


def test_two_pods_are_counted_also_while_one_goes_or_comes() -> None:
    plan = make(strategy=SURGE)
    coming = OwnWrite(WriteKind.CREATE, revision=NEW)
    going = pod(OLD, deleting=NOW)
    for view in (
        see("n1", pod(OLD), pod(NEW)),
        see("n1", going, pod(NEW)),
        see("n1", pod(OLD), writes=(coming,)),
    ):
        assert assess(plan, view).counts.two_pods == 1
    for view in (see("n1", pod(OLD)), see("n1", pod(NEW), pod(OLD, phase="Failed"))):
        assert assess(plan, view).counts.two_pods == 0
    assert assess(plan, see(SILENT, pod(OLD), pod(NEW))).counts.unreachable_two_pods == 1


def test_a_held_node_lives_by_the_pod_that_serves_before_one_that_goes() -> None:
    plan = make()
    pods = OwnPods((pod(NEW, deleting=NOW, created=NOW - 900), pod(OLD, created=NOW - 100)))
    assert held_revision(plan, pods) == OLD
    assert held_revision(plan, OwnPods((pod("unreachable"), pod(NEW, phase="Failed")))) == NEW
    assert held_revision(plan, OwnPods(())) == OLD


def test_an_empty_held_node_lives_by_the_last_pod_seen_there() -> None:
    plan = make(others=[revision("v0")])
    assert held_revision(plan, OwnPods(()), pod(NEW)) == NEW
    assert held_revision(plan, OwnPods(()), pod("v0")) == "v0"
    assert held_revision(plan, OwnPods(()), pod("deleted-since")) == OLD
    assert held_revision(plan, OwnPods((pod("v0", phase="Failed"),)), pod(NEW)) == "v0"
