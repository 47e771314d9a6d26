from __future__ import annotations

import pytest

from everynode.api import keys
from everynode.api.daemonset import IntOrPercent, LifecycleHook, UpdateStrategy, UpdateStrategyType
from everynode.decide.actions import CreatePod, DeletePod
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue
from everynode.decide.pods.name import pod_name
from everynode.decide.view import NodeView
from tests.support.fleet import (
    GPU,
    NEW,
    NOW,
    OLD,
    acts,
    assess,
    decide,
    make,
    node,
    pod,
    revision,
    see,
)

PAUSED = UpdateStrategy(paused=True)
ON_DELETE = UpdateStrategy(type=UpdateStrategyType.ON_DELETE)
SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
FUSSY = revision(NEW, nodeSelector={"disk": "ssd"})
HOOK = LifecycleHook(labels={"hold": "true"})
HOLD = {"hold": "true"}
PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}


# --- Missing -----------------------------------------------------------------------------------


def test_a_node_without_a_pod_gets_one_of_the_target() -> None:
    assert acts(make(), see("n1")) == ["create n1 v2 Missing"]


def test_a_node_that_is_not_wanted_gets_none() -> None:
    assert acts(make(), see(node("n1", taints=(GPU,)))) == []


def test_an_unreachable_node_gets_its_pod_all_the_same() -> None:
    assert acts(make(), see(node("n1", ready="Unknown"))) == ["create n1 v2 Missing"]


def test_a_held_node_comes_back_at_the_revision_it_came_from() -> None:
    assert acts(make(strategy=PAUSED), see("n1")) == ["create n1 v1 Missing"]


def test_a_held_node_comes_back_as_the_pod_that_is_still_seen_there() -> None:
    plan = make(strategy=PAUSED, others=[revision("v0")])
    ended = pod("v0", phase="Failed")
    assert acts(plan, see("n1", ended)) == ["create n1 v0 ReplaceFinished"]


def test_in_a_first_installation_a_held_node_gets_the_target() -> None:
    assert acts(make(strategy=PAUSED, from_hash=None), see("n1")) == ["create n1 v2 Missing"]


def test_with_on_delete_a_lost_pod_comes_back_at_the_target() -> None:
    assert acts(make(strategy=ON_DELETE), see("n1")) == ["create n1 v2 Missing"]


def test_a_terminating_pod_is_waited_for() -> None:
    going = pod(deleting=NOW + 30)
    made = assess(make(), see("n1", going))
    assert made.steps == ()
    assert made.reason.code == reasons.TERMINATING
    assert made.wake_at == NOW + 90


def test_a_pod_that_does_not_end_is_named_as_stuck() -> None:
    made = assess(make(), see("n1", pod(deleting=NOW - 60)))
    assert made.reason.code == reasons.STUCK


def test_an_ended_pod_that_is_being_deleted_is_not_waited_for() -> None:
    gone = pod(phase="Failed", deleting=NOW + 30)
    assert acts(make(), see("n1", gone)) == ["create n1 v2 Missing"]


# --- Progressive creation (R8) -----------------------------------------------------------------


def test_a_first_installation_creates_only_what_the_partition_releases() -> None:
    strategy = UpdateStrategy(partition=IntOrPercent(2))
    plan = make(strategy=strategy, from_hash=None, progressive=True)
    views = [see(f"n{i}") for i in range(4)]
    assert acts(plan, *views) == ["create n2 v2 Missing", "create n3 v2 Missing"]


def test_later_nothing_is_withheld_but_held() -> None:
    plan = make(strategy=UpdateStrategy(partition=IntOrPercent(1)), progressive=True)
    assert acts(plan, see("n1"), see("n2")) == ["create n1 v1 Missing", "create n2 v2 Missing"]


def test_without_progressive_creation_a_first_installation_goes_everywhere() -> None:
    plan = make(strategy=UpdateStrategy(partition=IntOrPercent(2)), from_hash=None)
    assert len(acts(plan, see("n1"), see("n2"))) == 2


def test_pause_does_not_withhold_pods_of_a_first_installation() -> None:
    plan = make(strategy=PAUSED, from_hash=None, progressive=True)
    assert acts(plan, see("n1")) == ["create n1 v2 Missing"]


# --- Misplaced, duplicate, vanished ------------------------------------------------------------


def test_a_pod_on_a_node_that_must_not_keep_it_is_deleted() -> None:
    assert acts(make(new=FUSSY), see("n1", pod(NEW))) == ["delete n1 agent-n1-v2 Misplaced"]


def test_a_held_node_is_evaluated_by_the_revision_it_holds() -> None:
    assert acts(make(new=FUSSY, strategy=PAUSED), see("n1", pod(OLD))) == []


def test_a_node_in_scope_that_the_target_does_not_want_is_emptied() -> None:
    assert acts(make(new=FUSSY), see("n1", pod(OLD))) == ["delete n1 agent-n1-v1 Misplaced"]


def test_a_node_that_must_not_have_a_pod_and_has_none_says_why() -> None:
    made = assess(make(new=FUSSY), see("n1"))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.NOT_ELIGIBLE)
    assert made.reason.text == "node selector disk=ssd does not match"


def test_a_held_node_with_two_pods_keeps_the_one_it_lives_by() -> None:
    plan = make(strategy=PAUSED, others=[revision("v0")])
    older = pod("v0", name="a", ready=False, created=NOW - 900)
    younger = pod(OLD, name="b", ready=False, created=NOW - 500)
    assert acts(plan, see("n1", younger, older)) == ["delete n1 b Duplicate"]


def test_of_two_pods_the_older_stays() -> None:
    older, younger = pod(NEW, name="a", created=NOW - 900), pod(NEW, name="b", created=NOW - 500)
    assert acts(make(), see("n1", younger, older)) == ["delete n1 b Duplicate"]


def test_of_two_pods_the_available_one_stays() -> None:
    sick = pod(NEW, name="a", created=NOW - 900, ready=False)
    well = pod(NEW, name="b", created=NOW - 500)
    assert acts(make(), see("n1", sick, well)) == ["delete n1 a Duplicate"]


def test_of_two_ready_pods_the_available_one_stays() -> None:
    young = pod(NEW, name="a", created=NOW - 900, since=NOW - 1)
    settled = pod(NEW, name="b", created=NOW - 500, since=NOW - 400)
    assert acts(make(min_ready_seconds=60), see("n1", young, settled)) == ["delete n1 a Duplicate"]


def test_when_surge_was_switched_off_the_pod_that_serves_stays() -> None:
    views = see("n1", pod(OLD), pod(NEW, ready=False))
    assert acts(make(strategy=PAUSED), views) == ["delete n1 agent-n1-v2 Duplicate"]
    views = see("n1", pod(OLD), pod(NEW))
    assert acts(make(strategy=PAUSED), views) == ["delete n1 agent-n1-v1 Duplicate"]


def test_an_unscheduled_pod_of_a_vanished_node_is_deleted_a_bound_one_left_alone() -> None:
    pending, bound = pod(OLD, name="a", scheduled=False), pod(OLD, name="b")
    gone = see("n1", pending, bound)
    view = type(gone)("n1", None, gone.pods)
    assert acts(make(), view) == ["delete n1 a NodeVanished"]


def test_a_pod_that_points_at_no_node_waits_for_its_scheduler() -> None:
    adopted = pod(OLD, name="a", on="", scheduled=False)
    assert acts(make(), see("n1", pod(NEW)), NodeView("", None, (adopted,))) == []


# --- Ended pods (R7) ---------------------------------------------------------------------------


def test_an_ended_pod_is_replaced_under_another_name_before_it_is_deleted() -> None:
    ended = pod(NEW, phase="Failed")
    first = decide(make(), [see("n1", ended)]).actions
    assert [type(each) for each in first] == [CreatePod]
    assert isinstance(first[0], CreatePod)
    assert first[0].name == pod_name("agent", "ds", "n1", NEW, [ended.uid])
    assert first[0].name != pod_name("agent", "ds", "n1", NEW)
    noted = first[0].body["metadata"]["annotations"]
    assert noted[keys.FAILURES] == "1@v2"
    replaced = see("n1", ended, pod(NEW, name=first[0].name, ready=False))
    assert acts(make(), replaced) == ["delete n1 agent-n1-v2 Finished"]


def test_the_replacement_waits_for_the_back_off() -> None:
    ended = pod(NEW, phase="Failed", ended=NOW - 3, failures="3@v2", created=NOW - 20)
    made = assess(make(), see("n1", ended))
    assert made.steps == ()
    assert made.reason.code == reasons.BACKOFF
    assert made.reason.text.startswith("its pod ended 4 times in a row; the next one is created at")
    assert made.wake_at == NOW + 5
    assert acts(make(), see("n1", ended), now=NOW + 5) == ["create n1 v2 ReplaceFinished"]


def test_a_succeeded_pod_is_replaced_too() -> None:
    assert acts(make(), see("n1", pod(NEW, phase="Succeeded"))) == ["create n1 v2 ReplaceFinished"]


@pytest.mark.parametrize(
    ("phase", "kind", "reason"),
    [("Failed", "Warning", "FailedDaemonPod"), ("Succeeded", "Normal", "SucceededDaemonPod")],
)
def test_the_deletion_of_an_ended_pod_is_an_event(phase: str, kind: str, reason: str) -> None:
    views = [see("n1", pod(NEW, name="ended", phase=phase), pod(NEW))]
    [action] = decide(make(), views).actions
    assert isinstance(action, DeletePod)
    assert action.notice is not None
    assert (action.notice.type, action.notice.reason) == (kind, reason)


def test_an_ended_pod_of_a_tainted_node_goes_without_a_successor() -> None:
    view = see(node("n1", taints=(GPU,)), pod(NEW, phase="Failed"))
    assert acts(make(), view) == ["delete n1 agent-n1-v2 Finished"]


def test_with_surge_an_ended_pod_in_back_off_is_waited_for() -> None:
    ended = pod(NEW, phase="Failed", ended=NOW - 3, failures="3@v2", created=NOW - 20)
    assert acts(make(strategy=SURGE), see("n1", ended)) == []


def test_the_name_knows_every_pod_that_is_still_there() -> None:
    gone = pod(NEW, name="gone", phase="Failed", deleting=NOW)
    going = pod(NEW, name="going", deleting=NOW + 30)
    [action] = decide(make(strategy=SURGE), [see("n1", gone, going)]).actions
    assert isinstance(action, CreatePod)
    assert action.name == pod_name("agent", "ds", "n1", NEW, [gone.uid, going.uid])


def test_with_surge_a_pod_comes_beside_one_that_leaves_and_not_beside_two() -> None:
    old, new = pod(OLD, deleting=NOW + 30), pod(NEW, deleting=NOW + 30)
    assert acts(make(strategy=SURGE), see("n1", old)) == ["create n1 v2 Missing"]
    assert acts(make(strategy=SURGE), see("n1", old, new)) == []


# --- Hooks -------------------------------------------------------------------------------------


def test_a_hooked_pod_is_marked_before_it_is_deleted() -> None:
    plan = make(new=FUSSY, pre_delete=HOOK)
    assert acts(plan, see("n1", pod(OLD, labels=HOLD))) == ["patch n1 agent-n1-v1 Hook"]


def test_a_marked_pod_waits_for_its_hook() -> None:
    plan = make(new=FUSSY, pre_delete=HOOK)
    made = assess(plan, see("n1", pod(OLD, labels={**HOLD, **PREPARING})))
    assert made.steps == ()
    assert made.reason.code == reasons.HOOK


def test_a_marked_pod_is_deleted_once_its_hook_lets_go() -> None:
    plan = make(pre_delete=HOOK)
    assert acts(plan, see("n1", pod(OLD, labels=PREPARING))) == ["delete n1 agent-n1-v1 HookDone"]
    without = make()
    assert acts(without, see("n1", pod(OLD, labels={**HOLD, **PREPARING}))) == [
        "delete n1 agent-n1-v1 HookDone"
    ]


def test_a_misplaced_pod_released_by_its_hook_is_reported_as_misplaced() -> None:
    plan = make(new=FUSSY, pre_delete=HOOK)
    view = see("n1", pod(OLD, labels=PREPARING))
    assert acts(plan, view) == ["delete n1 agent-n1-v1 HookDone"]


def test_a_hooked_duplicate_goes_through_its_hook() -> None:
    plan = make(pre_delete=HOOK)
    extra = pod(NEW, name="b", created=NOW - 1, labels=HOLD)
    assert acts(plan, see("n1", pod(NEW), extra)) == ["patch n1 b Hook"]
