from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everynode.api.daemonset import FieldError
from everynode.api.objects import Condition
from everynode.decide.fleet.conditions import FleetSummary, build_conditions, merge_conditions
from tests.support.fleet import NOW, at


def summary(**more: Any) -> FleetSummary:
    given: dict[str, Any] = {"desired": 10, "updated": 4, "available": 9, "max_unavailable": 1}
    given |= {"available_any": more.get("available", 9)}
    return FleetSummary(**(given | more))


def written(shown: FleetSummary, *observed: Condition, now: float = NOW) -> dict[str, Condition]:
    return {each.type: each for each in merge_conditions(build_conditions(shown), observed, now)}


def test_the_four_conditions_are_always_there() -> None:
    assert list(written(summary())) == ["Progressing", "Available", "Complete", "Paused"]


def test_a_rollout_that_moves_is_progressing() -> None:
    said = written(summary(progressing=1, not_started=5))
    assert (said["Progressing"].status, said["Progressing"].reason) == ("True", "RollingOut")
    assert said["Progressing"].message == "of 10 nodes 4 updated, 1 under way, 5 to come"
    assert (said["Complete"].status, said["Complete"].reason) == ("False", "RollingOut")
    assert said["Complete"].message == "4 of 10 nodes are updated"


def test_a_finished_rollout_is_complete_and_no_longer_progressing() -> None:
    said = written(summary(updated=10, available=10))
    assert (said["Complete"].status, said["Complete"].reason) == ("True", "AllNodesUpdated")
    assert (said["Progressing"].status, said["Progressing"].reason) == ("False", "Complete")


def test_no_node_at_all_is_complete() -> None:
    assert written(summary(desired=0, updated=0, available=0))["Complete"].status == "True"


def test_what_nodes_wait_for_is_counted_and_named() -> None:
    waiting = {
        "Hook": ["n9"],
        "NodeNotReady": ["n1", "n2", "n3", "n4", "n5"],
        "ImagePullBackOff": ["n6", "n7"],
    }
    said = written(summary(desired=288, updated=200, waiting=waiting, held=80))
    assert said["Progressing"].status == "False"
    assert said["Progressing"].reason == "NodeNotReady"
    assert said["Progressing"].message == (
        "8 nodes wait: 5 NodeNotReady (n1, n2, n3, …), 2 ImagePullBackOff (n6, n7), "
        "1 Hook (n9); of 288 nodes 200 updated, 8 under way, 80 held"
    )


def test_one_node_that_waits_is_one() -> None:
    said = written(summary(waiting={"Hook": ["n9"]}))
    assert said["Progressing"].message.startswith("1 node waits: 1 Hook (n9)")


def test_nodes_that_are_updated_when_somebody_deletes_their_pods_are_said_to_be_so() -> None:
    said = written(summary(on_delete=True, not_started=6))["Progressing"]
    assert said.message == "of 10 nodes 4 updated, 6 left until their pods are deleted"


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
def test_what_stands_still_says_who_holds_it(more: dict[str, Any], reason: str) -> None:
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
    said = written(summary(available=available))["Available"]
    assert (said.status, said.reason) == (status, reason)
    assert said.message == f"{available} of 10 nodes have an available pod"


def test_paused_says_how_far_it_has_come() -> None:
    said = written(summary(paused=True))["Paused"]
    assert (said.status, said.reason) == ("True", "Paused")
    assert said.message.startswith("4 of 10 nodes are updated; the others stay as they are")
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
    second = written(summary(updated=5, progressing=1), first, now=NOW + 9)["Progressing"]
    assert second.message != first.message
    assert second.last_transition_time == first.last_transition_time
    third = written(summary(updated=10, available=10), second, now=NOW + 9.7)["Progressing"]
    assert third.last_transition_time == at(NOW + 9)


def test_what_says_the_same_is_kept_as_it_was_observed() -> None:
    first = merge_conditions(build_conditions(summary()), (), NOW)
    again = merge_conditions(build_conditions(summary()), first, NOW + 99)
    assert again == first
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_conditions_of_others_survive_in_their_place() -> None:
    other = Condition("Blessed", "True", "Bishop", "by hand", at(NOW - 7))
    mine = merge_conditions(build_conditions(summary()), (), NOW)
    observed = (mine[0], other, *mine[1:])
    assert merge_conditions(build_conditions(summary()), observed, NOW + 1) == observed
    assert merge_conditions(build_conditions(summary()), (other,), NOW)[0] is other
