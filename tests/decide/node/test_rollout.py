from __future__ import annotations

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import (
    IntOrPercent,
    LabelSelector,
    LifecycleHook,
    RollingUpdateType,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.api.objects import Condition, Container, ReadinessGate
from everynode.api.times import format_time
from everynode.decide.inplace.state import InPlaceState, LastStatus, write_state
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue
from everynode.decide.view import NodeView
from tests.support.fleet import (
    GPU,
    NEW,
    NOW,
    OLD,
    acts,
    assess,
    at,
    make,
    node,
    pod,
    revision,
    see,
    template,
)

SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
HOOK = LifecycleHook(labels={"hold": "true"})
PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE, "hold": "true"}


def unavailable(number: int) -> UpdateStrategy:
    return UpdateStrategy(max_unavailable=IntOrPercent(number))


def olds(*names: str, ready: bool = True) -> list[NodeView]:
    return [see(name, pod(OLD, on=name, ready=ready)) for name in names]


def news(*names: str, ready: bool = True, created: float = NOW - 100) -> list[NodeView]:
    return [see(name, pod(NEW, on=name, ready=ready, created=created)) for name in names]


def deleted(*names: str) -> list[str]:
    return [f"delete {name} agent-{name}-v1 Update" for name in names]


# --- Ready pods (R4) ---------------------------------------------------------------------------


def test_as_many_ready_pods_are_taken_as_may_be_down_names_descending() -> None:
    assert acts(make(strategy=unavailable(2)), *olds("n1", "n2", "n3")) == deleted("n3", "n2")


def test_what_is_down_already_counts() -> None:
    plan = make(strategy=unavailable(2))
    assert acts(plan, *olds("n1", "n2"), *news("n3", ready=False)) == deleted("n2")
    assert acts(plan, *olds("n1", "n2"), *news("n3", "n4", ready=False)) == []


def test_a_terminating_pod_counts_as_down() -> None:
    going = see("n9", pod(OLD, on="n9", deleting=NOW + 30))
    assert acts(make(), *olds("n1", "n2"), going) == []


def test_a_second_update_within_min_ready_seconds_takes_nothing_at_once() -> None:
    young = [see(f"n{i}", pod(OLD, on=f"n{i}", since=NOW - 5)) for i in range(8)]
    plan = make(min_ready_seconds=60)
    assert acts(plan, *young) == []
    late = NOW + 55
    assert acts(plan, *young, now=late) == deleted("n7")


def test_a_ready_pod_on_a_node_that_is_down_all_the_same_goes_first() -> None:
    young = see("n1", pod(OLD, on="n1", since=NOW - 5))
    plan = make(min_ready_seconds=60)
    assert acts(plan, *olds("n2", "n3"), young) == deleted("n1")


def test_a_pod_is_not_taken_while_another_one_is_still_going() -> None:
    going = pod(OLD, name="other", deleting=NOW + 30)
    assert acts(make(), see("n1", pod(OLD), going)) == []


def test_percentages_are_of_the_nodes_counted_now() -> None:
    plan = make(strategy=UpdateStrategy(max_unavailable=IntOrPercent(30, True)))
    assert acts(plan, *olds("n1", "n2", "n3", "n4")) == deleted("n4", "n3")


def test_paused_takes_nothing() -> None:
    assert acts(make(strategy=UpdateStrategy(paused=True)), *olds("n1", "n2", ready=False)) == []


def test_on_delete_takes_nothing() -> None:
    assert (
        acts(
            make(strategy=UpdateStrategy(type=UpdateStrategyType.ON_DELETE)),
            *olds("n1", ready=False),
        )
        == []
    )


def test_partition_keeps_nodes_as_they_are() -> None:
    strategy = UpdateStrategy(max_unavailable=IntOrPercent(9), partition=IntOrPercent(2))
    assert acts(make(strategy=strategy), *olds("n1", "n2", "n3")) == deleted("n3")


def test_the_selector_keeps_other_nodes_as_they_are() -> None:
    strategy = UpdateStrategy(
        max_unavailable=IntOrPercent(9),
        selector=LabelSelector({"canary": "yes"}),
        partition=IntOrPercent(1),
    )
    canary = see(node("n1", labels={"canary": "yes"}), pod(OLD, on="n1"))
    assert acts(make(strategy=strategy), canary, *olds("n2", "n3")) == deleted("n1")


def test_pods_that_are_down_outside_the_scope_cost_nothing() -> None:
    strategy = UpdateStrategy(partition=IntOrPercent(2))
    views = [*olds("n3"), *olds("n1", "n2", ready=False)]
    assert acts(make(strategy=strategy), *views) == deleted("n3")


# --- Pods that are not Ready -------------------------------------------------------------------


def test_pods_that_are_not_ready_go_first() -> None:
    assert acts(make(), *olds("n1", ready=False), *olds("n2", "n3")) == deleted("n1")


def test_pods_that_are_not_ready_go_one_by_one_until_the_target_proves_itself() -> None:
    sick = olds("n1", "n2", "n3", "n4", ready=False)
    assert acts(make(), *sick) == deleted("n4")
    assert acts(make(), *sick, *news("n5", ready=False)) == []
    assert acts(make(), *sick, *news("n5", "n6")) == deleted("n4", "n3")
    assert acts(make(), *sick, *news("n5", "n6"), *news("n7", ready=False)) == deleted("n4")


def test_a_target_that_had_its_time_holds_up_no_cure() -> None:
    sick = olds("n1", ready=False)
    waiting = news("n2", ready=False, created=NOW - 309)
    plan = make(min_ready_seconds=10)
    assert acts(plan, *sick, *waiting) == []
    assert assess(plan, waiting[0]).wake_at == NOW + 1
    assert acts(plan, *sick, *waiting, now=NOW + 1) == deleted("n1")


def test_a_target_that_had_its_time_still_counts_as_down() -> None:
    assert acts(make(), *olds("n1"), *news("n2", ready=False, created=NOW - 9999)) == []


# --- Nodes that cannot be reached --------------------------------------------------------------


def silent(name: str, hash: str = OLD, *, ready: bool = False) -> NodeView:
    return see(node(name, ready="Unknown"), pod(hash, on=name, ready=ready))


def test_pods_on_a_silent_node_are_not_taken() -> None:
    made = assess(make(), silent("n1"))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.NODE_NOT_READY)


def test_a_silent_node_does_not_stop_the_others() -> None:
    assert acts(make(), silent("n9"), *olds("n1", "n2")) == deleted("n2")


def test_too_many_silent_nodes_stop_everything_that_works() -> None:
    assert acts(make(), silent("n8"), silent("n9"), *olds("n1", "n2")) == []


def test_a_node_that_fell_silent_with_the_target_counts_until_others_prove_it() -> None:
    lost = silent("n9", NEW)
    assert acts(make(), lost, *olds("n1", "n2")) == []
    assert acts(make(), lost, *olds("n1", "n2"), *news("n3")) == deleted("n2")


def test_a_node_that_says_itself_that_it_is_not_ready_is_an_ordinary_node() -> None:
    broken = see(node("n1", ready="False"), pod(OLD, ready=False))
    assert acts(make(), broken) == deleted("n1")


# --- Withdrawn tolerations ---------------------------------------------------------------------

TOLERANT = revision(OLD, tolerations=[{"operator": "Exists"}])


def tainted(*names: str, deleting: float | None = None) -> list[NodeView]:
    return [see(node(name, taints=(GPU,)), pod(OLD, on=name, deleting=deleting)) for name in names]


def test_pods_whose_toleration_is_withdrawn_go_within_the_budget() -> None:
    plan = make(old=TOLERANT, strategy=unavailable(2))
    assert acts(plan, *tainted("n1", "n2", "n3"), *news("n4")) == deleted("n3", "n2")
    leaving = tainted("n3", deleting=NOW + 20)
    assert acts(plan, *tainted("n1", "n2"), *leaving, *news("n4")) == deleted("n2")


def test_with_surge_they_go_within_max_surge_and_nothing_is_created_beside_them() -> None:
    plan = make(old=TOLERANT, strategy=SURGE)
    assert acts(plan, *tainted("n1", "n2"), *news("n4")) == deleted("n2")


def test_they_go_after_the_other_updates_and_only_for_a_target_that_works() -> None:
    plan = make(old=TOLERANT, strategy=unavailable(1))
    assert acts(plan, *tainted("n1"), *olds("n0"), *news("n4")) == deleted("n0")
    assert acts(plan, *tainted("n1"), *news("n4", ready=False)) == []
    assert acts(plan, *tainted("n1")) == deleted("n1")


def test_a_pod_goes_only_if_its_own_revision_tolerated_the_taint() -> None:
    assert acts(make(strategy=unavailable(2)), *tainted("n1", "n2"), *news("n4")) == []
    paused = UpdateStrategy(paused=True)
    assert acts(make(old=TOLERANT, strategy=paused), *tainted("n1"), *news("n4")) == []


# --- Tainted since -----------------------------------------------------------------------------


def test_a_pod_that_could_not_come_back_is_not_taken() -> None:
    view = see(node("n1", taints=(GPU,)), pod(OLD))
    made = assess(make(), view)
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.TAINTED)
    assert "taint gpu=true:NoSchedule is not tolerated" in made.reason.text


def test_a_pod_that_could_not_come_back_is_not_surged() -> None:
    view = see(node("n1", taints=(GPU,)), pod(OLD))
    assert acts(make(strategy=SURGE), view) == []


# --- Hooks -------------------------------------------------------------------------------------


def test_a_hooked_pod_is_taken_by_marking_it() -> None:
    plan = make(pre_delete=HOOK)
    hooked = [see(f"n{i}", pod(OLD, on=f"n{i}", labels={"hold": "true"})) for i in (1, 2)]
    assert acts(plan, *hooked) == ["patch n2 agent-n2-v1 Hook"]


def test_a_marked_pod_counts_as_taken() -> None:
    marked = see("n9", pod(OLD, on="n9", labels=PREPARING))
    assert acts(make(pre_delete=HOOK), marked, *olds("n1")) == []


def test_not_being_ready_does_not_get_a_pod_past_its_hook() -> None:
    hooked = see("n1", pod(OLD, ready=False, labels={"hold": "true"}))
    assert acts(make(pre_delete=HOOK), hooked) == ["patch n1 agent-n1-v1 Hook"]


# --- Surge (R5) --------------------------------------------------------------------------------


def surged(name: str, *, old: bool = True, new: bool = False) -> NodeView:
    return see(name, pod(OLD, on=name, ready=old), pod(NEW, on=name, ready=new, created=NOW - 9))


def test_a_target_pod_comes_beside_the_old_one() -> None:
    assert acts(make(strategy=SURGE), *olds("n1", "n2")) == ["create n2 v2 Surge"]


def test_at_most_max_surge_nodes_have_two_pods() -> None:
    assert acts(make(strategy=SURGE), surged("n3"), *olds("n1", "n2")) == []


def test_the_old_pod_goes_when_the_new_one_is_available() -> None:
    view = surged("n1", new=True)
    assert acts(make(strategy=SURGE), view) == ["delete n1 agent-n1-v1 Surged"]
    waiting = make(strategy=SURGE, min_ready_seconds=2000)
    assert acts(waiting, view) == []
    assert assess(waiting, view).wake_at == NOW - 1000 + 2000


def test_an_old_pod_that_is_not_ready_need_not_wait_for_the_new_one() -> None:
    view = surged("n1", old=False)
    assert acts(make(strategy=SURGE), view) == deleted("n1")


def test_a_flapping_old_pod_is_kept_while_too_many_targets_fail() -> None:
    view = surged("n1", old=False)
    assert acts(make(strategy=SURGE), view, *news("n2", ready=False)) == []


def test_two_pods_count_until_the_old_one_is_gone() -> None:
    leaving = see("n9", pod(OLD, on="n9", deleting=NOW + 30), pod(NEW, on="n9"))
    assert acts(make(strategy=SURGE), leaving, *olds("n1")) == []


def test_with_surge_old_pods_that_are_not_ready_go_within_the_same_bound() -> None:
    plan = make(strategy=SURGE)
    assert acts(plan, *olds("n1", "n2", "n3", ready=False)) == deleted("n3")
    assert acts(plan, *olds("n1", "n2", "n3", ready=False), *news("n4", "n5")) == deleted(
        "n3", "n2"
    )


def test_with_surge_a_new_pod_comes_beside_a_terminating_one() -> None:
    plan = make(strategy=SURGE)
    going = [see(f"n{i}", pod(NEW, on=f"n{i}", deleting=NOW + 30)) for i in (1, 2)]
    assert acts(plan, *going) == ["create n1 v2 Missing"]


def test_nothing_is_surged_while_another_pod_is_still_going() -> None:
    going = pod(OLD, name="other", deleting=NOW + 30)
    made = assess(make(strategy=SURGE), see("n1", pod(OLD), going))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.TERMINATING)


def test_no_new_pod_comes_beside_one_that_a_silent_kubelet_does_not_end() -> None:
    lost = see(node("n1", ready="Unknown"), pod(NEW, deleting=NOW + 30))
    assert acts(make(strategy=SURGE), lost) == []


def test_a_shared_host_port_starts_nothing() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}]
    containers = [{"name": "agent", "image": "agent", "ports": ports}]
    plan = make(
        strategy=SURGE,
        old=revision(OLD, template=template(containers=containers)),
        new=revision(NEW, template=template(containers=containers, hostPID=True)),
    )
    for view in (*olds("n1"), *olds("n2", ready=False)):
        made = assess(plan, view)
        assert (made.queue, made.reason.code) == (Queue.NONE, reasons.SURGE_CANNOT_FIT)
    going = see("n3", pod(NEW, on="n3", deleting=NOW + 30))
    assert acts(plan, going) == []


def test_an_ended_surge_pod_keeps_its_back_off() -> None:
    plan = make(strategy=SURGE)
    ended = pod(NEW, phase="Failed", ended=NOW - 3, failures="2@v2", created=NOW - 20)
    view = see("n1", pod(OLD), ended)
    made = assess(plan, view)
    assert (made.steps, made.reason.code) == ((), reasons.BACKOFF)
    assert acts(plan, view, now=NOW + 1) == ["create n1 v2 Surge"]


def test_paused_leaves_a_surge_pair_alone() -> None:
    plan = make(
        strategy=UpdateStrategy(
            max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(9), paused=True
        )
    )
    assert acts(plan, surged("n1", old=False)) == []


def test_paused_finishes_a_surge_and_starts_none() -> None:
    plan = make(
        strategy=UpdateStrategy(
            max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(9), paused=True
        )
    )
    assert acts(plan, surged("n1", new=True), *olds("n2")) == ["delete n1 agent-n1-v1 Surged"]


# --- In place (R6) -----------------------------------------------------------------------------

IN_PLACE = UpdateStrategy(rolling=RollingUpdateType.IN_PLACE)
GATE = keys.INPLACE_UPDATE_READY


def gated(
    name: str = "n1", hash: str = OLD, *, open: bool = True, ready: bool = True, reason: str = ""
) -> NodeView:
    """A pod that may be updated in place."""
    said = Condition(GATE, "True" if open else "False", reason, last_transition_time=at(NOW - 10))
    made = pod(hash, on=name, ready=ready and open, conditions=(said,))
    spec = msgspec.structs.replace(
        made.spec,
        readiness_gates=(ReadinessGate(GATE),),
        containers=(Container("agent", f"agent:{hash}"),),
    )
    return see(name, msgspec.structs.replace(made, spec=spec))


def test_in_place_takes_pods_within_the_same_budget() -> None:
    plan = make(strategy=IN_PLACE)
    assert acts(plan, gated("n1"), gated("n2")) == ["patch n2 agent-n2-v1 InPlace"]


def test_a_pod_without_the_gate_is_recreated() -> None:
    assert acts(make(strategy=IN_PLACE), *olds("n1")) == deleted("n1")


def test_a_tainted_node_is_updated_in_place() -> None:
    view = gated("n1")
    tainted = see(node("n1", taints=(GPU,)), *view.pods)
    assert acts(make(strategy=IN_PLACE), tainted) == ["patch n1 agent-n1-v1 InPlace"]


def test_tainted_nodes_in_place_stay_within_the_budget() -> None:
    views = [see(node(n, taints=(GPU,)), *gated(n).pods) for n in ("n1", "n2", "n3")]
    assert len(acts(make(strategy=IN_PLACE), *views)) == 1


def test_a_pod_taken_out_of_service_is_carried_on_without_asking_again() -> None:
    begun = gated("n1", open=False, reason="StartInPlaceUpdate")
    made = assess(make(strategy=IN_PLACE), begun)
    assert (made.queue, made.counts.under_way, made.counts.down) == (Queue.MAINTAIN, 1, 1)
    assert acts(make(strategy=IN_PLACE), begun, gated("n2")) == ["patch n1 agent-n1-v1 InPlace"]


def test_a_pod_taken_out_of_service_goes_back_when_the_update_is_paused() -> None:
    begun = gated("n1", open=False, reason="StartInPlaceUpdate")
    strategy = UpdateStrategy(rolling=RollingUpdateType.IN_PLACE, paused=True)
    assert acts(make(strategy=strategy), begun) == ["patch n1 agent-n1-v1 Gate"]


def test_a_pod_taken_out_of_service_goes_back_when_pods_are_to_be_recreated() -> None:
    begun = gated("n1", open=False, reason="StartInPlaceUpdate")
    assert acts(make(), begun) == ["patch n1 agent-n1-v1 Gate"]


def test_pods_taken_out_of_service_that_cannot_be_changed_are_recreated_at_no_cost() -> None:
    views = [gated(n, open=False, reason="StartInPlaceUpdate") for n in ("n1", "n2")]
    plan = make(strategy=IN_PLACE, new=revision(NEW, hostNetwork=True))
    deletes = ["delete n2 agent-n2-v1 Update", "delete n1 agent-n1-v1 Update"]
    assert acts(plan, *views, gated("n3")) == deletes


def test_a_pod_taken_out_of_service_that_cannot_be_recreated_either_serves_on() -> None:
    begun = gated("n1", open=False, reason="StartInPlaceUpdate")
    tainted = see(node("n1", taints=(GPU,)), *begun.pods)
    plan = make(strategy=IN_PLACE, new=revision(NEW, hostNetwork=True))
    assert assess(plan, tainted).reason.code == reasons.TAINTED
    assert acts(plan, tainted) == ["patch n1 agent-n1-v1 Gate"]


def test_a_new_pod_gets_its_gate_opened() -> None:
    fresh = gated("n1", NEW, open=False)
    assert acts(make(strategy=IN_PLACE), fresh) == ["patch n1 agent-n1-v2 Gate"]


@pytest.mark.parametrize("broken", [b"[]", b'{"spec": 1}', b"?"])
def test_a_template_that_cannot_be_read_is_no_reason_to_touch_a_pod(broken: bytes) -> None:
    new = make(strategy=IN_PLACE, new=revision(NEW, template=broken))
    assert acts(new, gated("n1")) == []
    old = make(strategy=IN_PLACE, old=revision(OLD, template=broken))
    assert acts(old, gated("n1")) == deleted("n1")


def changing(begun: float, *, open: bool = False) -> NodeView:
    """A pod whose in-place update has begun then and waits for its container."""
    state = InPlaceState(
        revision=NEW,
        update_timestamp=format_time(begun),
        last_container_statuses={"agent": LastStatus("sha256:old")},
    )
    [found] = gated("n1", NEW, open=open, reason="StartInPlaceUpdate").pods
    noted = msgspec.structs.replace(found.metadata.annotations, inplace_state=write_state(state))
    meta = msgspec.structs.replace(found.metadata, annotations=noted)
    return see("n1", msgspec.structs.replace(found, metadata=meta))


def test_an_update_in_place_is_looked_at_again_when_its_time_is_over() -> None:
    made = assess(make(strategy=IN_PLACE, min_ready_seconds=40), changing(NOW - 350))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.IN_PLACE)
    assert made.wake_at == NOW + 250


def test_an_update_that_came_to_nothing_on_a_tainted_node_is_left_and_named() -> None:
    [stuck] = changing(NOW - 600).pods
    made = assess(make(strategy=IN_PLACE), see(node("n1", taints=(GPU,)), stuck))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.TAINTED)


def test_a_pod_whose_resize_is_refused_for_good_is_recreated() -> None:
    view = changing(NOW - 10)
    refused = msgspec.structs.replace(view, unresizable=("uid-agent-n1-v2", NEW))
    assert acts(make(strategy=IN_PLACE), view) == []
    assert acts(make(strategy=IN_PLACE), refused) == ["delete n1 agent-n1-v2 Update"]


@pytest.mark.parametrize("open", [True, False])
def test_an_update_that_came_to_nothing_is_recreated_within_the_budget(open: bool) -> None:
    view = changing(NOW - 600, open=open)
    made = assess(make(strategy=IN_PLACE), view)
    assert made.queue is (Queue.UPDATE_READY_NO_BUDGET if open else Queue.REPLACE_UNREADY)
    assert made.reason.text.startswith("recreated: not updated in place within 10 minutes")
    assert acts(make(strategy=IN_PLACE), view) == ["delete n1 agent-n1-v2 Update"]
