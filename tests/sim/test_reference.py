from __future__ import annotations

import msgspec
import pytest

from everynode.sim.campaign import judge
from everynode.sim.draw import draw
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.reference import compare, harmless, paths, play_beside
from everynode.sim.shelf import Pods
from everynode.sim.world import play

PLAN = Plan(
    5,
    nodes=3,
    manifests=(daemonset(rolling={"maxUnavailable": 1}),),
    happenings=(
        Happening("set-image", at=8.0, args={"image": "agent:never-ready"}),
        Happening("delete-pod", at=15.0, args={"node": 0}),
        Happening("set-image", at=30.0, args={"image": "agent:v3"}),
    ),
    quiet_at=35.0,
)


def test_the_end_does_not_depend_on_the_way() -> None:
    result, world = play(PLAN)
    assert result.kept, result.breaches
    assert paths(world) == []


@pytest.mark.parametrize("first", [0, 8])
def test_faults_that_destroy_nothing_cost_no_pods(first: int) -> None:
    found = {seed: play_beside(harmless(seed))[0].breaches for seed in range(first, first + 8)}
    assert {seed: texts for seed, texts in found.items() if texts} == {}


def test_a_fault_that_destroys_a_pod_is_told_as_a_broken_promise() -> None:
    plan = harmless(1)
    killed = Happening("delete-pod", at=40.0, args={"node": 0}, fault="F46")
    harmed = msgspec.structs.replace(plan, happenings=(plan.happenings[0], killed))
    result = judge(harmed)
    assert {each.promise for each in result.breaches} == {"L7"}
    assert any("created" in each.message for each in result.breaches)


def test_an_end_that_its_spec_does_not_explain_is_told_as_a_broken_promise() -> None:
    _, world = play(msgspec.structs.replace(PLAN, from_its_end=True))
    pod = next(iter(world.record.scene.pods.values()))
    labels = {**pod.metadata.labels, "left": "behind"}
    metadata = msgspec.structs.replace(pod.metadata, labels=labels)
    strange = msgspec.structs.replace(pod, metadata=metadata)
    pods = world.record.scene.pods
    assert isinstance(pods, Pods)
    pods.change(pod, strange)
    compare(world)
    assert [each.promise for each in world.breaches] == ["L6"]


def test_one_seed_in_twenty_each_is_compared_with_the_worlds_beside_it() -> None:
    plans = [draw(seed) for seed in range(40)]
    assert [plan.seed for plan in plans if plan.from_its_end] == [2, 22]
    assert [plan.seed for plan in plans if plan.unharmed] == [3, 23]
