from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everynode.api.daemonset import FieldError
from everynode.api.objects import Condition
from everynode.decide.fleet.conditions import (
    FleetSummary,
    add_stalled,
    build_conditions,
    describe_fleet,
    merge_conditions,
    stall_check,
    waiting_nodes,
)
from tests.support.fleet import NOW, at


def summary(**more: Any) -> FleetSummary:
    given: dict[str, Any] = {"desired": 10, "done": 4, "available_any": 9, "max_unavailable": 1}
    return FleetSummary(**(given | more))


def written(shown: FleetSummary, *observed: Condition, now: float = NOW) -> dict[str, Condition]:
    return {each.type: each for each in stored(shown, *observed, now=now)}


def stored(shown: FleetSummary, *observed: Condition, now: float = NOW) -> tuple[Condition, ...]:
    merged = merge_conditions(build_conditions(shown, describe_fleet(shown)), observed, now)
    return (
        add_stalled(merged, stall_check(shown, describe_fleet(shown)), now)[0]
        if shown.advanced
        else merged
    )


def state_of(shown: FleetSummary) -> list[str]:
    """The reason of Ready, and which of the three conditions of deployment tools are True."""
    said = written(shown)
    true = [name for name in ("Ready", "Reconciling", "Stalled") if said[name].status == "True"]
    return [said["Ready"].reason, *true]


def test_a_pod_that_restarted_is_named_only_while_it_holds_up_other_nodes() -> None:
    waiting = {"Restarted": ["a"], "NotReady": ["b"]}
    assert waiting_nodes(waiting, updating=True) == waiting
    assert waiting_nodes(waiting, updating=False) == {"NotReady": ["b"]}
    assert waiting_nodes({"NotReady": ["b"]}, updating=False) == {"NotReady": ["b"]}


def test_the_conditions_that_are_always_there() -> None:
    ours = ["Progressing", "Available", "Complete", "Paused"]
    assert list(written(summary())) == [*ours, "Ready", "Reconciling", "Stalled"]


def test_the_native_kind_gets_none_that_its_tools_would_read_after_we_are_gone() -> None:
    ours = ["Progressing", "Available", "Complete", "Paused"]
    assert list(written(summary(advanced=False))) == ours


def test_a_rollout_that_moves_is_progressing() -> None:
    said = written(summary(progressing=1, not_started=5))
    assert (said["Progressing"].status, said["Progressing"].reason) == ("True", "RollingOut")
    assert (
        said["Progressing"].message == "of 10 nodes 4 updated and available, 1 under way, 5 to come"
    )
    assert (said["Complete"].status, said["Complete"].reason) == ("False", "RollingOut")
    assert said["Complete"].message == "4 of 10 nodes are updated and available"


def test_a_finished_rollout_is_complete_and_progressing_as_a_deployment_is() -> None:
    said = written(summary(done=10))
    assert (said["Complete"].status, said["Complete"].reason) == ("True", "AllNodesUpdated")
    progressing = said["Progressing"]
    assert (progressing.status, progressing.reason) == ("True", "NewRevisionAvailable")


def test_a_complete_fleet_names_nodes_that_keep_an_old_pod() -> None:
    said = written(summary(done=10, waiting={"Tainted": ["n11"]}))["Complete"]
    assert said.message == (
        "10 of 10 nodes are updated and available; besides them 1 node waits: 1 Tainted (n11)"
    )


def test_a_pod_that_is_updated_and_not_available_is_not_counted_as_done() -> None:
    said = written(summary(desired=198, done=195, available_any=195, moving=3, progressing=3))
    assert said["Complete"].message == "195 of 198 nodes are updated and available"
    assert said["Ready"].message == "of 198 nodes 195 updated and available, 3 under way"


def test_no_node_at_all_is_complete() -> None:
    assert written(summary(desired=0, done=0))["Complete"].status == "True"


def test_what_nodes_wait_for_is_counted_and_named() -> None:
    waiting = {
        "Hook": ["n9"],
        "NodeNotReady": ["n1", "n2", "n3", "n4", "n5"],
        "ImagePullBackOff": ["n6", "n7"],
    }
    said = written(summary(desired=288, done=200, waiting=waiting, held=80))
    assert said["Progressing"].status == "False"
    assert said["Progressing"].reason == "NodeNotReady"
    assert said["Progressing"].message == (
        "8 nodes wait: 5 NodeNotReady (n1, n2, n3, …), 2 ImagePullBackOff (n6, n7), "
        "1 Hook (n9); of 288 nodes 200 updated and available, 8 under way, 80 held"
    )


def test_one_node_that_waits_is_one() -> None:
    said = written(summary(waiting={"Hook": ["n9"]}))
    assert said["Progressing"].message.startswith("1 node waits: 1 Hook (n9)")


def test_with_on_delete_nodes_are_reported_as_waiting_for_their_pods_to_be_deleted() -> None:
    said = written(summary(on_delete=True, not_started=6))["Progressing"]
    assert (
        said.message == "of 10 nodes 4 updated and available, 6 left until their pods are deleted"
    )


def test_a_message_never_grows_without_bound() -> None:
    waiting = {f"Odd{i}": [f"n{i}"] for i in range(500)}
    assert len(written(summary(waiting=waiting))["Progressing"].message) < 1000


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"paused": True, "waiting": {"Hook": ["n1"]}}, "Paused"),
        ({"on_delete": True}, "OnDelete"),
        ({"on_delete": True, "waiting": {"Hook": ["n1"]}}, "Hook"),
        ({"held": 6}, "Held"),
        ({}, "Waiting"),
    ],
)
def test_a_held_rollout_names_what_holds_it(more: dict[str, Any], reason: str) -> None:
    said = written(summary(**more))
    assert (said["Progressing"].status, said["Progressing"].reason) == ("False", reason)
    assert said["Complete"].reason == reason


@pytest.mark.parametrize(
    ("available", "status", "reason"),
    [(9, "True", "EnoughAvailable"), (8, "False", "TooFewAvailable")],
)
def test_availability_is_measured_by_what_may_be_down(
    available: int, status: str, reason: str
) -> None:
    said = written(summary(available_any=available))["Available"]
    assert (said.status, said.reason) == (status, reason)
    assert said.message == f"{available} of 10 nodes have an available pod"


def test_paused_says_how_far_it_has_come() -> None:
    said = written(summary(paused=True))["Paused"]
    assert (said.status, said.reason) == ("True", "Paused")
    assert said.message.startswith(
        "4 of 10 nodes are updated and available; the others stay as they are"
    )
    assert written(summary())["Paused"].status == "False"


def test_exceptional_conditions_appear_when_needed_and_then_stay() -> None:
    said = written(
        summary(port_conflict=2, faults=(FieldError("spec.burstReplicas", "is no number"),))
    )
    assert said["SurgeCannotFit"].status == "True"
    assert "on 2 nodes" in said["SurgeCannotFit"].message
    assert said["Faulty"].message == "spec.burstReplicas: is no number"
    after = written(summary(), said["SurgeCannotFit"], said["Faulty"])
    assert after["SurgeCannotFit"].status == "False"
    assert after["Faulty"].status == "False"


def test_time_moves_only_when_the_status_does() -> None:
    first = written(summary(progressing=1))["Progressing"]
    assert first.last_transition_time == datetime.fromtimestamp(NOW, UTC)
    second = written(summary(done=5, progressing=1), first, now=NOW + 9)["Progressing"]
    assert second.message != first.message
    assert second.last_transition_time == first.last_transition_time
    third = written(summary(held=6), second, now=NOW + 9.7)["Progressing"]
    assert third.last_transition_time == at(NOW + 9)


def test_what_says_the_same_is_kept_as_it_was_observed() -> None:
    first = stored(summary())
    again = stored(summary(), *first, now=NOW + 99)
    assert again == first
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_conditions_of_others_survive_in_their_place() -> None:
    other = Condition("Blessed", "True", "Bishop", "by hand", at(NOW - 7))
    mine = merge_conditions(build_conditions(summary(), describe_fleet(summary())), (), NOW)
    observed = (mine[0], other, *mine[1:])
    assert (
        merge_conditions(build_conditions(summary(), describe_fleet(summary())), observed, NOW + 1)
        == observed
    )
    assert (
        merge_conditions(build_conditions(summary(), describe_fleet(summary())), (other,), NOW)[0]
        is other
    )


BAD = FieldError("spec.updateStrategy.rollingUpdate.selector", "selects no node")
HELD: dict[str, Any] = {"held": 6, "as_declared": 10}
ONE_SILENT: dict[str, Any] = {"done": 9, "as_declared": 9, "silent_unreached": 1}


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"done": 10}, ["Complete", "Ready"]),
        ({"done": 10, "progressing": 1, "moving": 1}, ["Complete", "Ready"]),
        (HELD, ["Held", "Ready"]),
        (HELD | {"paused": True}, ["Paused", "Ready"]),
        ({"on_delete": True, "not_started": 6, "as_declared": 10}, ["OnDelete", "Ready"]),
        ({"moving": 1, "progressing": 1}, ["RollingOut", "Reconciling"]),
        # A broken canary: the two of the scope are updated, and one of them is not available.
        (HELD | {"done": 3, "as_declared": 9}, ["Waiting"]),
        (HELD | {"done": 3, "as_declared": 9, "moving": 1}, ["RollingOut", "Reconciling"]),
        # A held node without an available pod is not as declared either.
        (HELD | {"as_declared": 9}, ["Waiting"]),
        (HELD | {"as_declared": 9, "silent_held": 1}, ["Held", "Ready"]),
        # A few silent nodes are excused, except in a canary and where nothing else is there.
        (ONE_SILENT, ["AllButSilent", "Ready"]),
        (ONE_SILENT | {"silent_excused": False}, ["Waiting"]),
        (ONE_SILENT | {"done": 3, "held": 6}, ["Waiting"]),
        ({"desired": 1, "done": 0, "silent_unreached": 1}, ["Waiting"]),
        (HELD | {"faults": (BAD,)}, ["Faulty", "Stalled"]),
        (HELD | {"faults": (FieldError("metadata.annotations", "is odd"),)}, ["Held", "Ready"]),
    ],
)
def test_deployment_tools_read_one_state(more: dict[str, Any], state: list[str]) -> None:
    assert state_of(summary(**more)) == state


def stalls_after(shown: FleetSummary, *observed: Condition, now: float = NOW) -> float | None:
    merged = merge_conditions(build_conditions(shown, describe_fleet(shown)), observed, now)
    wake_at = add_stalled(merged, stall_check(shown, describe_fleet(shown)), now)[1]
    return None if wake_at is None else wake_at - NOW


def test_an_update_is_stalled_when_nothing_has_moved_for_five_minutes() -> None:
    broken = summary(waiting={"ImagePullBackOff": ["n1"]}, min_ready_seconds=10)
    assert stalls_after(broken) == 310
    first = stored(broken)
    before = written(broken, *first, now=NOW + 309)
    assert (before["Stalled"].status, before["Ready"].reason) == ("False", "Waiting")
    after = written(broken, *first, now=NOW + 310)
    assert (after["Stalled"].status, after["Stalled"].reason) == ("True", "ImagePullBackOff")
    assert (after["Ready"].status, after["Ready"].reason) == ("False", "Stalled")
    assert stalls_after(broken, *after.values(), now=NOW + 310) is None
    assert tuple(written(broken, *after.values(), now=NOW + 999).values()) == tuple(after.values())


def test_a_movement_ends_the_stall_and_begins_the_wait_anew() -> None:
    broken = summary(waiting={"CrashLoopBackOff": ["n1"]})
    stalled = stored(broken, *stored(broken), now=NOW + 300)
    moved = stored(summary(moving=1, progressing=1), *stalled, now=NOW + 400)
    assert {each.type: each.status for each in moved}["Stalled"] == "False"
    assert stalls_after(broken, *moved, now=NOW + 401) == 701


def test_what_was_ready_until_now_is_not_stalled_at_once() -> None:
    ready = stored(summary(done=10))
    assert stalls_after(summary(done=9), *ready, now=NOW + 5000) == 5300


def test_a_hook_that_holds_a_pod_is_no_stall() -> None:
    assert stalls_after(summary(waiting={"Hook": ["n1"]})) is None


def test_pods_that_the_template_does_not_want_are_counted_in_the_message() -> None:
    gone = "pods are being removed from 7 nodes that may not keep them"
    for state in (summary(removing=7), summary(removing=7, desired=0, done=0)):
        assert gone in written(state)["Progressing"].message


def test_one_node_is_no_nodes() -> None:
    one = written(summary(desired=1, done=0, removing=1, port_conflict=1))
    assert one["Progressing"].message.startswith("of 1 node 0 updated")
    assert "removed from 1 node that" in one["Progressing"].message
    assert one["SurgeCannotFit"].message.startswith("on 1 node the new pod")


def test_a_revert_says_that_the_canaries_are_held() -> None:
    held = summary(desired=8, done=6, held=2, reverted=True)
    text = "held nodes keep the version that was taken back"
    assert text in written(held)["Progressing"].message
