from __future__ import annotations

import pytest

from everynode.sim.invariants import tally
from everynode.sim.invariants.budget import Budget
from everynode.sim.invariants.views import by_controller, owner_uid, taken_pod
from everynode.sim.loop import SimLoop
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan, Timing
from everynode.sim.record import Commit
from everynode.sim.world import World


@pytest.mark.parametrize("min_ready", [0, 7])
def test_what_a_tally_allows_the_referee_allows(
    min_ready: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "MANY", 1)
    plan = Plan(
        7,
        nodes=6,
        manifests=(daemonset(rolling={"maxUnavailable": 2}, min_ready=min_ready),),
        timing=Timing(stop=2.0),
        happenings=(
            Happening("set-image", at=20.0, args={"image": "agent:v2"}),
            Happening("delete-pod", at=24.0, args={"node": 1}),
            Happening("lose-node", at=25.0, seconds=60.0, args={"node": 2}),
            Happening("add-node", at=30.0, args={"node": "late"}),
            Happening("set-image", at=40.0, args={"image": "agent:v3"}),
        ),
        quiet_at=130.0,
    )
    loop = SimLoop(plan.seed)
    world = World(loop, plan)
    budget, tallies = Budget(world.record), tally.Tallies(world.record)
    seen = {"allowed": 0, "left to the referee": 0}

    def compare(commit: Commit) -> None:
        pod = taken_pod(commit) if by_controller(commit) else None
        if pod is not None and owner_uid(pod):
            allowed = tallies.allows(commit, pod)
            seen["allowed" if allowed else "left to the referee"] += 1
            assert not allowed or budget._fault(commit, pod) == ""
        tallies.note(commit)

    world.record.judges.append(compare)
    result = loop.run_until_complete(world.live())
    loop.close()
    assert result.kept, result.breaches
    assert seen["allowed"] > 5
