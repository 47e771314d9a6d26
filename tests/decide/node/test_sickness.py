from __future__ import annotations

import msgspec
import pytest

from everynode.api.daemonset import IntOrPercent, UpdateStrategy
from everynode.decide.node.sickness import sick_at
from tests.support.fleet import NEW, NOW, OLD, acts, at, make, pod, see

SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))


def test_a_pod_that_was_ready_is_sick_after_30_seconds() -> None:
    assert sick_at(pod(OLD, ready=False, since=NOW - 5)) == NOW + 25


def test_a_pod_that_never_was_ready_is_sick() -> None:
    assert sick_at(pod(OLD, ready=False, since=NOW - 4, created=NOW - 5)) == 0.0
    assert sick_at(pod(OLD, scheduled=False)) == 0.0


@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull"])
def test_a_pod_that_waits_in_a_back_off_is_sick(reason: str) -> None:
    assert sick_at(pod(OLD, since=NOW - 5, waiting=reason)) == 0.0


def test_a_container_that_starts_again_is_not_sick_for_that() -> None:
    assert sick_at(pod(OLD, since=NOW - 5, waiting="ContainerCreating")) == NOW + 25


def test_the_time_is_corrected_where_the_clock_of_the_node_is_behind() -> None:
    made = pod(OLD, ready=False, since=NOW - 3600, created=NOW - 5000)
    initialized = msgspec.structs.replace(
        made.status.conditions[0], type="Initialized", last_transition_time=at(NOW - 8600)
    )
    status = msgspec.structs.replace(
        made.status,
        start_time=at(NOW - 8600),
        conditions=(*made.status.conditions, initialized),
    )
    assert sick_at(msgspec.structs.replace(made, status=status)) == NOW + 30


def test_a_blip_costs_no_pod() -> None:
    blip = [see(f"n{i}", pod(OLD, on=f"n{i}", ready=False, since=NOW - 1)) for i in range(4)]
    done = [see(f"m{i}", pod(NEW, on=f"m{i}")) for i in range(4)]
    assert acts(make(), *blip, *done) == []
    late = acts(make(), *blip, *done, now=NOW + 29)
    assert late == [f"delete n{i} agent-n{i}-v1 Update" for i in (3, 2, 1, 0)]


def test_one_pod_that_is_not_ready_for_a_moment_goes_first_within_the_budget() -> None:
    blip = see("n1", pod(OLD, ready=False, since=NOW - 1))
    assert acts(make(), blip, see("n2", pod(OLD, on="n2"))) == ["delete n1 agent-n1-v1 Update"]


def test_with_surge_the_successor_comes_first_also_in_a_blip() -> None:
    blip = see("n1", pod(OLD, ready=False, since=NOW - 1))
    assert acts(make(strategy=SURGE), blip) == ["create n1 v2 Surge"]
    assert acts(make(strategy=SURGE), blip, now=NOW + 29) == ["delete n1 agent-n1-v1 Update"]
