from __future__ import annotations

from typing import Any

import msgspec

from everynode.sim.loop import SimLoop
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.record import Commit, Scene
from everynode.sim.world import World

PARTS = ("nodes", "pods", "sets", "revisions")
PLAN = Plan(
    3,
    nodes=3,
    manifests=(daemonset(),),
    happenings=(
        Happening("set-image", at=8.0, args={"image": "agent:v2"}),
        Happening("delete-pod", at=9.0, args={"node": 0}),
        Happening("add-node", at=10.0, args={"node": "late"}),
        Happening("remove-node", at=14.0, args={"node": "late"}),
    ),
    quiet_at=20.0,
)


def _copy(scene: Scene) -> tuple[int, float, dict[str, Any]]:
    return scene.version, scene.time, {part: dict(getattr(scene, part)) for part in PARTS}


def _played(plan: Plan = PLAN) -> tuple[World, list[tuple[int, float, dict[str, Any]]]]:
    """A world at its end, and copies of every state there has been."""
    loop = SimLoop(plan.seed)
    world = World(loop, plan)
    known = [_copy(world.record.scene)]

    def keep(commit: Commit) -> None:
        assert _copy(world.record.scenes[-2]) == known[-1]
        known.append(_copy(world.record.scene))

    world.record.judges.append(keep)
    loop.run_until_complete(world.live())
    loop.close()
    return world, known


def test_every_state_of_the_past_is_made_again_from_the_present() -> None:
    world, known = _played()
    scenes = world.record.scenes
    assert len(scenes) == len(known) > 50
    assert [_copy(scene) for scene in reversed(scenes)] == known[::-1]
    assert _copy(scenes[0]) == known[0]


def test_the_states_of_a_part_lead_back_to_what_somebody_surely_knew() -> None:
    world, known = _played()
    for part in PARTS:
        floor = known[len(known) // 2][0]
        states = list(world.record.scenes.states(part, floor))
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


def test_what_somebody_wrote_is_seen_beside_what_others_have_taken_away_unseen() -> None:
    gone = Happening("delete-revision", at=8.0)
    world, _ = _played(msgspec.structs.replace(PLAN, happenings=(gone, *PLAN.happenings)))
    first, lost, second = (c for c in world.record.commits if c.kind == "controllerrevisions.apps")
    assert (first.actor, lost.type) == (second.actor, "DELETED")
    scenes, both = world.record.scenes, {first.after.metadata.name, second.after.metadata.name}
    found = list(scenes.beside("revisions", first.version, second.actor))
    assert [set(state) for state, _ in found] == [both]
    assert not list(scenes.beside("revisions", lost.version, second.actor))
    assert not list(scenes.beside("revisions", first.version, "somebody else"))
