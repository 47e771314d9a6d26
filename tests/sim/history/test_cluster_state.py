from __future__ import annotations

from typing import Any

import msgspec

from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World

PARTS = ("nodes", "pods", "sets", "revisions")
PLAN = Plan(
    3,
    nodes=3,
    manifests=(daemonset(),),
    actions=(
        Action("set-image", at=8.0, args={"image": "agent:v2"}),
        Action("delete-pod", at=9.0, args={"node": 0}),
        Action("add-node", at=10.0, args={"node": "late"}),
        Action("remove-node", at=14.0, args={"node": "late"}),
    ),
    quiet_at=20.0,
)


def _copy(cluster: ClusterState) -> tuple[int, float, dict[str, Any]]:
    return cluster.version, cluster.time, {part: dict(getattr(cluster, part)) for part in PARTS}


def _played(plan: Plan = PLAN) -> tuple[World, list[tuple[int, float, dict[str, Any]]]]:
    """A finished world, and copies of every state it went through."""
    loop = SimLoop(plan.seed)
    world = World(loop, plan)
    known = [_copy(world.record.cluster)]

    def keep(commit: Commit) -> None:
        assert _copy(world.record.states[-2]) == known[-1]
        known.append(_copy(world.record.cluster))

    world.record.on_commit.append(keep)
    loop.run_until_complete(world.run())
    loop.close()
    return world, known


def test_every_state_of_the_past_is_made_again_from_the_present() -> None:
    world, known = _played()
    states = world.record.states
    assert len(states) == len(known) > 50
    assert [_copy(cluster) for cluster in reversed(states)] == known[::-1]
    assert _copy(states[0]) == known[0]


def test_the_states_of_a_part_reach_back_to_the_known_version() -> None:
    world, known = _played()
    for part in PARTS:
        floor = known[len(known) // 2][0]
        states = list(world.record.states.part_states(part, floor))
        expected: list[Any] = []
        for version, _, parts in known[-2::-1]:
            if not expected or parts[part] != expected[-1]:
                expected.append(parts[part])
            if version <= floor:
                break
        found: list[Any] = []
        for state, version in states:
            assert floor <= version or len(states) == 1
            if not found or dict(state) != found[-1]:
                found.append(dict(state))
        assert found == expected


def test_a_process_sees_its_own_writes_before_deletions_of_others() -> None:
    gone = Action("delete-revision", at=8.0)
    world, _ = _played(msgspec.structs.replace(PLAN, actions=(gone, *PLAN.actions)))
    # The annotation that notes a complete rollout is the only change of a stored revision here.
    first, lost, second = (
        commit
        for commit in world.record.commits
        if commit.kind == "controllerrevisions.apps" and commit.type != "MODIFIED"
    )
    assert (first.actor, lost.type) == (second.actor, "DELETED")
    states, both = world.record.states, {first.after.metadata.name, second.after.metadata.name}
    found = list(states.unsynced_states("revisions", first.version, second.actor))
    assert [set(state) for state, _ in found] == [both]
    assert not list(states.unsynced_states("revisions", lost.version, second.actor))
    assert not list(states.unsynced_states("revisions", first.version, "another"))
