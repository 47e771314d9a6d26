from __future__ import annotations

import msgspec
import pytest

from everynode.sim.differential import (
    compare,
    differences_from_fresh,
    generate_harmless,
    play_and_compare,
)
from everynode.sim.explore.campaign import play_safely
from everynode.sim.history.snapshots import PodIndex
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import play

PLAN = Plan(
    5,
    nodes=3,
    manifests=(daemonset(rolling={"maxUnavailable": 1}),),
    actions=(
        Action("set-image", at=8.0, args={"image": "agent:never-ready"}),
        Action("delete-pod", at=15.0, args={"node": 0}),
        Action("set-image", at=30.0, args={"image": "agent:v3"}),
    ),
    quiet_at=35.0,
)


def test_the_end_does_not_depend_on_the_way() -> None:
    result, world = play(PLAN)
    assert result.kept, result.violations
    assert differences_from_fresh(world) == []


@pytest.mark.parametrize("first", [0, 8])
def test_faults_that_destroy_nothing_cost_no_pods(first: int) -> None:
    found = {
        seed: play_and_compare(generate_harmless(seed))[0].violations
        for seed in range(first, first + 8)
    }
    assert {seed: texts for seed, texts in found.items() if texts} == {}


def test_a_harmless_fault_that_destroys_a_pod_is_a_broken_promise() -> None:
    plan = generate_harmless(1)
    killed = Action("delete-pod", at=40.0, args={"node": 0}, fault="F46")
    harmed = msgspec.structs.replace(plan, actions=(plan.actions[0], killed))
    result = play_safely(harmed)
    assert {each.promise for each in result.violations} == {"L7"}
    assert any("created" in each.message for each in result.violations)


def test_a_final_state_that_the_spec_does_not_explain_is_a_broken_promise() -> None:
    _, world = play(msgspec.structs.replace(PLAN, compare_with_fresh=True))
    pod = next(iter(world.record.cluster.pods.values()))
    labels = {**pod.metadata.labels, "left": "behind"}
    metadata = msgspec.structs.replace(pod.metadata, labels=labels)
    strange = msgspec.structs.replace(pod, metadata=metadata)
    pods = world.record.cluster.pods
    assert isinstance(pods, PodIndex)
    pods.change(pod, strange)
    compare(world)
    assert [each.promise for each in world.violations] == ["L6"]


def test_one_seed_in_twenty_each_is_compared_with_the_worlds_beside_it() -> None:
    plans = [generate_plan(seed) for seed in range(40)]
    assert [plan.seed for plan in plans if plan.compare_with_fresh] == [2, 22]
    assert [plan.seed for plan in plans if plan.compare_without_faults] == [3, 23]
