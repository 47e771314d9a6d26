from __future__ import annotations

import msgspec

from everynode.sim.checks.oracle import is_preparing
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Plan
from everynode.sim.recovery import JOINING
from everynode.sim.world import play

PLAN = Plan(
    3,
    nodes=4,
    manifests=(daemonset(rolling={"maxUnavailable": 1, "partition": 2}, min_ready=2),),
    quiet_at=5.0,
    check_recovery=True,
)


def test_a_world_without_faults_updates_in_time_and_rolls_back() -> None:
    result, world = play(PLAN)
    assert result.kept, result.violations
    assert JOINING in world.record.cluster.nodes
    assert {ds.name for ds in world.record.cluster.sets.values()} == {"agent", "beside"}


def test_a_stuck_pod_does_not_hold_up_other_nodes() -> None:
    manifests = (daemonset(rolling={"maxUnavailable": 2}),)
    result, world = play(msgspec.structs.replace(PLAN, manifests=manifests))
    assert result.kept, result.violations
    assert any("stick-pod" in text for _, text in world.notes)


def test_an_update_that_takes_too_long_is_found_out() -> None:
    slow = daemonset(annotations={"sim.everynode.io/behaviour": "start=300"})
    result, _ = play(msgspec.structs.replace(PLAN, manifests=(slow,)))
    assert {each.promise for each in result.violations} == {"L2", "L5"}


HOOK = {"preDelete": {"labelsHandler": {"hook": "yes"}}}


def test_a_rollback_restores_the_state_behind_an_unanswered_hook() -> None:
    manifests = (daemonset(lifecycle=HOOK, labels={"hook": "yes"}),)
    result, world = play(msgspec.structs.replace(PLAN, manifests=manifests))
    assert result.kept, result.violations
    assert any("hold-hooks" in text for _, text in world.notes)
    marked = [
        commit.after.uid
        for commit in world.record.commits
        if commit.kind == "pods" and commit.after is not None and is_preparing(commit.after)
    ]
    assert len(set(marked)) == 1
