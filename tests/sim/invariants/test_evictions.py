from __future__ import annotations

import msgspec
import pytest

from everynode.kube import verbs
from everynode.kube.resources import Resource
from everynode.sim.invariants.evictions import Evictions
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.record import Commit
from everynode.sim.world import World, play

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PLAN = Plan(
    1,
    nodes=3,
    manifests=(daemonset(),),
    happenings=(Happening("evict-pod", at=8.0, args={"node": 1}),),
    quiet_at=10.0,
)


@pytest.fixture(scope="module")
def evicted() -> tuple[World, Commit]:
    """A world in which nothing protects pods, just after one of three was evicted."""
    _, world = play(PLAN)
    record = world.record
    number, commit = next(
        (number, commit)
        for number, commit in enumerate(record.commits)
        if commit.actor == "person" and commit.kind == "pods" and commit.after.terminating
    )
    del record.scenes[number + 2 :]
    return world, commit


@pytest.mark.parametrize(("least", "kept"), [(1, True), (2, True), (3, False)])
def test_an_eviction_leaves_as_many_ready_as_the_budget_asks_for(
    evicted: tuple[World, Commit], least: int, kept: bool
) -> None:
    world, commit = evicted
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "agent"}}}
    body = {"metadata": {"name": "agent"}, "spec": spec}
    request = verbs.create(BUDGETS, body, namespace="default")
    assert commit.asked is not None
    world.record.asked[:] = [msgspec.structs.replace(commit.asked, request=request)]
    found = list(Evictions(world.record).judge(commit))
    assert (found == []) is kept


def test_a_budget_of_other_pods_does_not_matter(evicted: tuple[World, Commit]) -> None:
    world, commit = evicted
    spec = {"minAvailable": 9, "selector": {"matchLabels": {"app": "other"}}}
    request = verbs.create(BUDGETS, {"metadata": {"name": "other"}, "spec": spec}, namespace="x")
    assert commit.asked is not None
    world.record.asked[:] = [msgspec.structs.replace(commit.asked, request=request)]
    assert list(Evictions(world.record).judge(commit)) == []
