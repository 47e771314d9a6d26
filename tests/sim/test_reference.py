from __future__ import annotations

import msgspec
import pytest

from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.reference import additional, harmless, paths
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
    found = {seed: additional(harmless(seed)) for seed in range(first, first + 8)}
    assert {seed: texts for seed, texts in found.items() if texts} == {}


def test_a_fault_that_destroys_a_pod_is_counted() -> None:
    plan = harmless(1)
    killed = Happening("delete-pod", at=40.0, args={"node": 0}, fault="F46")
    harmed = msgspec.structs.replace(plan, happenings=(plan.happenings[0], killed))
    assert any("created" in text for text in additional(harmed))
