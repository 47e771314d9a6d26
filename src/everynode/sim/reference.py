"""Worlds beside worlds: what the same spec gives without its history, and the same story unharmed.

L6: whatever its history, a world ends like one that began with its last spec. L7: faults that
destroy no pods cost no pods; every node sees as many created and deleted as without them.
"""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.sim.invariants.likeness import differences, likeness, moves
from everynode.sim.invariants.referee import Referee
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan, Timing
from everynode.sim.record import Scene
from everynode.sim.upheavals import EVERY
from everynode.sim.world import Result, World, play

# Processes die, views lag, requests are lost: nothing of that touches a pod.
HARMLESS: Final = (
    *(f"F{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)),
    *(f"F{number}" for number in (18, 19, 23, 24, 25, 50)),
)
_FAULTS: Final = tuple(each for each in EVERY if each.id in HARMLESS)
_SETS: Final = ("daemonsets.apps", "daemonsets.apps.kruise.io")
# The first pods are there before anything is updated, whoever dies or is slow in the beginning.
_UPDATE_AT: Final = 45.0
_FROM: Final = 40.0
_UNTIL: Final = 100.0
_MOST_TOLD: Final = 3


def play_beside(plan: Plan) -> tuple[Result, World]:
    """Play a plan, and beside it the worlds with which it is to be compared."""
    result, world = play(plan)
    if result.kept:
        compare(world)
    return msgspec.structs.replace(result, breaches=tuple(world.breaches)), world


def compare(world: World) -> None:
    """Tell a world that has settled in what it differs from those beside it."""
    if world.plan.from_its_end:
        for text in paths(world)[:_MOST_TOLD]:
            world.breach("L6", f"not as its last spec alone would have it: {text}")
    if world.plan.unharmed:
        for text in additional(world)[:_MOST_TOLD]:
            world.breach("L7", text)


# --- L6: the end does not depend on the way ------------------------------------------------------


def paths(world: World) -> list[str]:
    """On which nodes a world that has settled differs from one that began with its last spec."""
    scene = world.record.scene
    if not _is_forgetful(world):
        return []
    manifests = tuple(_last_specs(world))
    plan = Plan(
        seed=world.plan.seed,
        nodes=len(scene.nodes),
        manifests=manifests,
        timing=world.plan.timing,
        quiet_at=1.0,
        name=f"{world.plan.name}, from its end",
    )
    _, other = play(plan)
    found = []
    for ds in sorted(scene.sets.values(), key=lambda ds: ds.name):
        same = _named(other.record.scene, ds.name)
        after = likeness(scene, ds)
        before = likeness(other.record.scene, same) if same is not None else {}
        found += [f"{ds.name}: {text}" for text in differences(before, after)]
    return found


def _is_forgetful(world: World) -> bool:
    """Whether history is to be forgotten: no node is held, and the nodes are as they began."""
    scene = world.record.scene
    referees = [Referee(scene, ds, 0.0) for ds in scene.sets.values()]
    forgets = all(each.rolling and each.free for each in referees)
    names = [f"node-{number:04d}" for number in range(1, len(scene.nodes) + 1)]
    labelled = any(each.what == "label-node" for each in world.plan.happenings)
    return forgets and sorted(scene.nodes) == names and not labelled


def _last_specs(world: World) -> list[dict[str, Any]]:
    found = []
    for kind in _SETS:
        for record in world.api.store.collection(kind).scan():
            obj = msgspec.json.decode(record.body)
            meta = {"name": record.name, "namespace": record.namespace}
            kept = {key: obj[key] for key in ("apiVersion", "kind", "spec")}
            found.append({**kept, "metadata": meta})
    return found


def _named(scene: Scene, name: str) -> DaemonSet | None:
    return next((ds for ds in scene.sets.values() if ds.name == name), None)


# --- L7: the way does not depend on faults that destroy nothing ----------------------------------


def harmless(seed: int) -> Plan:
    """One update, in the midst of faults that touch no pod."""
    chance = random.Random(f"{seed}/harmless")
    rolling = chance.choice(
        (
            {"maxUnavailable": 1},
            {"maxUnavailable": "50%"},
            {"maxSurge": 1, "maxUnavailable": 0},
            {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"},
            {"maxUnavailable": 2, "partition": 1},
        )
    )
    nodes = chance.choice((2, 3, 4, 6))
    update = Happening("set-image", at=_UPDATE_AT, args={"image": "agent:v2"})
    faults = [
        fault.draw(chance, round(chance.uniform(_FROM, _UNTIL), 2), nodes)
        for fault in chance.sample(_FAULTS, chance.choice((2, 3, 4)))
    ]
    return Plan(
        seed=seed,
        nodes=nodes,
        manifests=(daemonset(rolling=rolling, min_ready=chance.choice((0, 3))),),
        timing=Timing(stop=chance.choice((0.5, 5.0))),
        controllers=chance.choice((1, 2)),
        happenings=(update, *faults),
        quiet_at=_UNTIL + 30.0,
        unharmed=True,
        name=f"seed {seed}",
    )


def is_comparable(plan: Plan) -> bool:
    """Whether nothing but its faults can make the difference."""
    timed = [each for each in plan.happenings if each.call < 0]
    return all(each.at >= (_FROM if each.fault else _UPDATE_AT) for each in timed)


def additional(world: World) -> list[str]:
    """What was created and deleted more often, or less, than in the same plan without faults."""
    plan = world.plan
    kept = tuple(each for each in plan.happenings if not each.fault)
    _, sound = play(msgspec.structs.replace(plan, happenings=kept))
    ours, theirs = moves(world.record), moves(sound.record)
    return [
        f"{node}: {ours[node, what]} pods were {what}, without faults {theirs[node, what]}"
        for node, what in sorted({**ours, **theirs})
        if ours[node, what] != theirs[node, what]
    ]
