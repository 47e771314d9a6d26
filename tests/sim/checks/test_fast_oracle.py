from __future__ import annotations

import pytest

from everynode.sim.checks import fast_oracle
from everynode.sim.checks.max_unavailable import MaxUnavailable
from everynode.sim.checks.possible_views import by_controller, disrupted_pod, owner_uid
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import Commit
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import World


@pytest.mark.parametrize("min_ready", [0, 7])
def test_what_the_fast_oracle_allows_the_oracle_allows(
    min_ready: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_oracle, "MANY", 1)
    plan = Plan(
        7,
        nodes=6,
        manifests=(daemonset(rolling={"maxUnavailable": 2}, min_ready=min_ready),),
        timing=Timing(stop=2.0),
        actions=(
            Action("set-image", at=20.0, args={"image": "agent:v2"}),
            Action("delete-pod", at=24.0, args={"node": 1}),
            Action("lose-node", at=25.0, seconds=60.0, args={"node": 2}),
            Action("add-node", at=30.0, args={"node": "late"}),
            Action("set-image", at=40.0, args={"image": "agent:v3"}),
        ),
        quiet_at=130.0,
    )
    loop = SimLoop(plan.seed)
    world = World(loop, plan)
    budget, oracles = MaxUnavailable(world.record), fast_oracle.FastOracles(world.record)
    seen = {"allowed": 0, "left to the oracle": 0}

    def compare(commit: Commit) -> None:
        pod = disrupted_pod(commit) if by_controller(commit) else None
        if pod is not None and owner_uid(pod):
            allowed = oracles.allows(commit, pod)
            seen["allowed" if allowed else "left to the oracle"] += 1
            assert not allowed or budget._fault(commit, pod) == ""
        oracles.observe(commit)

    world.record.on_commit.append(compare)
    result = loop.run_until_complete(world.run())
    loop.close()
    assert result.kept, result.violations
    assert seen["allowed"] > 5
