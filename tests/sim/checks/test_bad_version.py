"""S1c: what justifies replacing a Ready pod by a version that works nowhere."""

from __future__ import annotations

import msgspec
import pytest

from everynode.sim.checks.bad_version import BadVersion
from everynode.sim.checks.possible_views import by_controller, disrupted_pod
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import Commit
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World

# The first new pod gets another owner before it is available, and the controller does not see it.
PLAN = Plan(
    1,
    nodes=3,
    manifests=(daemonset(min_ready=10),),
    actions=(
        Action("set-image", at=20.0, args={"image": "agent:v2"}),
        Action("silence", at=25.0, seconds=15.0, args={"kind": "pods"}),
        Action("orphan-pod", at=26.0, args={"node": 2}),
    ),
    quiet_at=45.0,
)


@pytest.mark.parametrize("told", [False, True])
def test_a_pod_that_is_available_by_what_was_told_of_it_shows_that_its_version_works(
    told: bool,
) -> None:
    loop = SimLoop(PLAN.seed)
    world = World(loop, PLAN)
    harm = BadVersion(world.record)
    found: list[list[str]] = []

    def check(commit: Commit) -> None:
        if commit.kind in harm.observed_kinds:
            harm.observe(commit)
        elif by_controller(commit) and disrupted_pod(commit) is not None and len(found) < 2:
            assert commit.cause is not None
            known_versions = dict.fromkeys(commit.cause.known_versions, commit.version - 1)
            cause = (
                msgspec.structs.replace(commit.cause, known_versions=known_versions)
                if told
                else commit.cause
            )
            found.append(list(harm.check(msgspec.structs.replace(commit, cause=cause))))

    world.record.on_commit.append(check)
    loop.run_until_complete(world.run())
    loop.close()
    assert [len(each) for each in found] == [0, 1 if told else 0]
