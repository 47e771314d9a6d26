"""What excuses whoever takes a Ready pod for a version that works nowhere."""

from __future__ import annotations

import msgspec
import pytest

from everynode.sim.invariants.harm import Harm
from everynode.sim.invariants.views import by_controller, taken_pod
from everynode.sim.loop import SimLoop
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.record import Commit
from everynode.sim.world import World

# The first new pod is somebody else's before it is available, and the controller is not told.
PLAN = Plan(
    1,
    nodes=3,
    manifests=(daemonset(min_ready=10),),
    happenings=(
        Happening("set-image", at=20.0, args={"image": "agent:v2"}),
        Happening("silence", at=25.0, seconds=15.0, args={"kind": "pods"}),
        Happening("orphan-pod", at=26.0, args={"node": 2}),
    ),
    quiet_at=45.0,
)


@pytest.mark.parametrize("told", [False, True])
def test_a_pod_that_is_available_by_what_was_told_of_it_shows_that_its_version_works(
    told: bool,
) -> None:
    loop = SimLoop(PLAN.seed)
    world = World(loop, PLAN)
    harm = Harm(world.record)
    found: list[list[str]] = []

    def judge(commit: Commit) -> None:
        if commit.kind in harm.noted:
            harm.note(commit)
        elif by_controller(commit) and taken_pod(commit) is not None and len(found) < 2:
            assert commit.asked is not None
            floors = dict.fromkeys(commit.asked.floors, commit.version - 1)
            asked = msgspec.structs.replace(commit.asked, floors=floors) if told else commit.asked
            found.append(list(harm.judge(msgspec.structs.replace(commit, asked=asked))))

    world.record.judges.append(judge)
    loop.run_until_complete(world.live())
    loop.close()
    assert [len(each) for each in found] == [0, 1 if told else 0]
