from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.kube import verbs
from everynode.kube.resources import Resource
from everynode.sim.checks.evictions import Evictions
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import Commit
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PLAN = Plan(
    1,
    nodes=3,
    manifests=(daemonset(),),
    actions=(Action("evict-pod", at=8.0, args={"node": 1}),),
    quiet_at=10.0,
)


def _violations(budget: dict[str, Any]) -> list[str]:
    """The violations of an eviction in a world with such a PodDisruptionBudget."""
    loop = SimLoop(PLAN.seed)
    world = World(loop, PLAN)
    evictions, found = Evictions(world.record), []

    def check(commit: Commit) -> None:
        pod = commit.after if commit.kind == "pods" else None
        if commit.actor == "person" and pod is not None and pod.terminating:
            assert commit.cause is not None
            request = verbs.create(BUDGETS, budget, namespace="default")
            world.record.requests[:] = [msgspec.structs.replace(commit.cause, request=request)]
            found.append(list(evictions.check(commit)))

    world.record.on_commit.append(check)
    loop.run_until_complete(world.run())
    loop.close()
    assert len(found) == 1
    return found[0]


def _budget(least: int, app: str) -> dict[str, Any]:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    return {"metadata": {"name": app}, "spec": spec}


@pytest.mark.parametrize(("least", "kept"), [(1, True), (2, True), (3, False)])
def test_an_eviction_leaves_as_many_ready_as_the_budget_asks_for(least: int, kept: bool) -> None:
    assert (_violations(_budget(least, "agent")) == []) is kept


def test_a_budget_of_other_pods_does_not_matter() -> None:
    assert _violations(_budget(9, "other")) == []
