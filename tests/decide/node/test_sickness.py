from __future__ import annotations

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import IntOrPercent, UpdateStrategy
from everynode.api.objects import Pod
from everynode.decide.actions import CreatePod, DeletePod
from everynode.decide.node import reasons
from everynode.decide.node.sickness import sick_at
from tests.support.fleet import NEW, NOW, OLD, acts, assess, at, decide, make, node, pod, see

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


# --- A node that was sick before the target came -----------------------------------------------


NOT_READY = node("n9", ready="False")


def noted(made: Pod, target: str = NEW) -> Pod:
    annotations = msgspec.structs.replace(made.metadata.annotations, replaced_sick=target)
    metadata = msgspec.structs.replace(made.metadata, annotations=annotations)
    return msgspec.structs.replace(made, metadata=metadata)


def not_available_in_time(*, target: str = NEW, created: float = NOW - 300) -> Pod:
    return noted(pod(NEW, on="n9", ready=False, created=created, since=created), target)


def test_the_delete_of_a_sick_pod_says_so_and_its_successor_notes_it() -> None:
    sick = see("n1", pod(OLD, ready=False))
    (action,) = decide(make(), [sick]).actions
    assert isinstance(action, DeletePod)
    assert action.sick
    (made,) = decide(make(), [see("n1", emptied_sick=True)]).actions
    assert isinstance(made, CreatePod)
    assert made.body["metadata"]["annotations"] == {keys.REPLACED_SICK: NEW}


def test_a_healthy_pod_and_a_target_pod_are_not_noted_as_sick() -> None:
    (action,) = decide(make(), [see("n1", pod(OLD))]).actions
    assert isinstance(action, DeletePod)
    assert not action.sick
    (made,) = decide(make(), [see("n1")]).actions
    assert isinstance(made, CreatePod)
    assert "annotations" not in made.body["metadata"]


def test_the_note_goes_on_to_the_successor_of_a_failed_pod() -> None:
    failed = noted(pod(NEW, phase="Failed"))
    actions = decide(make(), [see("n1", failed)]).actions
    made = next(each for each in actions if isinstance(each, CreatePod))
    assert made.body["metadata"]["annotations"][keys.REPLACED_SICK] == NEW


def test_a_node_that_was_sick_before_no_longer_takes_the_only_slot() -> None:
    old, taken = see("n1", pod(OLD)), ["delete n1 agent-n1-v1 Update"]
    assert acts(make(), old, see(NOT_READY, not_available_in_time())) == taken
    assert acts(make(), old, see(NOT_READY, not_available_in_time(created=NOW - 299))) == []
    assert acts(make(), old, see(node("n9"), not_available_in_time())) == []
    assert acts(make(), old, see(NOT_READY, not_available_in_time(target=OLD))) == []


def test_it_is_named() -> None:
    reason = assess(make(), see(NOT_READY, not_available_in_time())).reason
    assert reason.code == reasons.NODE_NOT_READY
    assert "as before the update" in reason.text


def test_more_of_them_than_the_bound_count() -> None:
    several = [
        see(node(name, ready="False"), noted(pod(NEW, on=name, ready=False, created=NOW - 400)))
        for name in ("n8", "n9")
    ]
    assert acts(make(), see("n1", pod(OLD)), *several) == []
