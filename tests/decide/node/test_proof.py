from __future__ import annotations

import msgspec
import pytest

from everynode.api.daemonset import Flavour, IntOrPercent, UpdateStrategy
from everynode.api.objects import (
    ContainerState,
    ContainerStatus,
    Pod,
    StateRunning,
    StateTerminated,
)
from everynode.api.times import format_time
from everynode.decide.inplace.state import InPlaceState, LastStatus, write_state
from everynode.decide.node import reasons
from everynode.decide.node.proof import proven_at, steady_at
from tests.support.fleet import NEW, NOW, OLD, acts, assess, at, make, pod, see

BOTH = pytest.mark.parametrize("flavour", [Flavour.NATIVE, Flavour.ADVANCED])
SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))


def restarted(
    started: float, *, on: str = "n9", count: int = 1, last_id: str = "c0", last_start: float = 0.0
) -> Pod:
    """A Ready target pod whose container restarted, at this time for the last time."""
    made = pod(NEW, on=on, since=started)
    status = ContainerStatus(
        "agent",
        ready=True,
        restart_count=count,
        state=ContainerState(running=StateRunning(at(started))),
        last_state=ContainerState(
            terminated=StateTerminated(1, "Error", started_at=at(last_start), container_id=last_id)
        ),
    )
    return msgspec.structs.replace(
        made, status=msgspec.structs.replace(made.status, container_statuses=(status,))
    )


def updated_in_place(made: Pod, state: InPlaceState) -> Pod:
    noted = msgspec.structs.replace(made.metadata.annotations, inplace_state=write_state(state))
    metadata = msgspec.structs.replace(made.metadata, annotations=noted)
    return msgspec.structs.replace(made, metadata=metadata)


def test_without_a_restart_a_pod_is_steady() -> None:
    assert steady_at(pod(NEW)) == 0.0


def test_a_restarted_container_has_to_run_for_five_minutes() -> None:
    assert steady_at(restarted(NOW - 10)) == NOW + 290


def test_the_restart_by_an_update_in_place_does_not_count() -> None:
    changed = InPlaceState(
        revision=NEW,
        update_timestamp=format_time(NOW - 20),
        last_container_statuses={"agent": LastStatus("sha256:old", "c0")},
    )
    assert steady_at(updated_in_place(restarted(NOW - 10), changed)) == 0.0
    again = restarted(NOW - 10, count=2, last_id="c1")
    assert steady_at(updated_in_place(again, changed)) == NOW + 290


def test_a_restart_before_a_resize_in_place_does_not_count() -> None:
    resized = InPlaceState(
        revision=NEW, update_timestamp=format_time(NOW - 100), update_resources=True
    )
    before = restarted(NOW - 90, last_start=NOW - 500)
    after = restarted(NOW - 10, last_start=NOW - 90)
    assert steady_at(updated_in_place(before, resized)) == 0.0
    assert steady_at(updated_in_place(after, resized)) == NOW + 290


def test_a_pod_proves_the_target_after_two_seconds() -> None:
    assert proven_at(pod(NEW, since=NOW - 1)) == NOW + 1


@BOTH
def test_no_node_is_taken_for_a_target_that_is_ready_for_a_moment(flavour: Flavour) -> None:
    plan = make(flavour=flavour)
    old, moment = see("n1", pod(OLD)), see("n9", pod(NEW, on="n9", since=NOW - 1))
    assert acts(plan, old, moment) == []
    assert acts(plan, old, moment, now=NOW + 1) == ["delete n1 agent-n1-v1 Update"]


def test_once_it_is_proven_on_a_node_the_others_need_not_wait() -> None:
    views = [see(f"n{i}", pod(NEW, on=f"n{i}", since=NOW)) for i in (7, 8)]
    proven = see("n9", pod(NEW, on="n9", since=NOW - 2))
    assert acts(make(), see("n1", pod(OLD)), *views, proven) == ["delete n1 agent-n1-v1 Update"]


@BOTH
def test_a_restarted_target_holds_its_slot_until_it_runs_for_five_minutes(
    flavour: Flavour,
) -> None:
    plan = make(flavour=flavour)
    views = [see("n1", pod(OLD)), see("n8", pod(NEW, on="n8")), see("n9", restarted(NOW - 10))]
    assert acts(plan, *views) == []
    assert acts(plan, *views, now=NOW + 290) == ["delete n1 agent-n1-v1 Update"]


def test_a_restarted_target_says_so() -> None:
    made = assess(make(), see("n9", restarted(NOW - 10)))
    assert made.reason.code == reasons.RESTARTED
    assert made.wake_at == NOW + 290
    assert made.counts.available == 1  # the status counts as Kubernetes does


def test_a_surge_ends_when_the_target_is_proven_here_or_elsewhere() -> None:
    plan = make(strategy=SURGE)
    both = see("n1", pod(OLD), pod(NEW, since=NOW - 1))
    ended = ["delete n1 agent-n1-v1 Surged"]
    assert acts(plan, both) == []
    assert acts(plan, both, now=NOW + 1) == ended
    assert acts(plan, both, see("n9", pod(NEW, on="n9"))) == ended


def test_a_surge_does_not_end_while_the_target_restarts() -> None:
    plan = make(strategy=SURGE)
    both = see("n1", pod(OLD), restarted(NOW - 10, on="n1"))
    assert acts(plan, both, see("n9", pod(NEW, on="n9"))) == []
