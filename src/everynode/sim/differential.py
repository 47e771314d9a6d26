"""Differential runs: a run is compared with one without its history, or without its faults.

L6: whatever its history, a run ends like one that began with the last spec. L7: faults that destroy
no pods cost no pods: each node sees the same number of creates and deletes as without them.
"""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.sim.checks.normalised_state import differences, normalised_state, pod_churn
from everynode.sim.checks.oracle import Oracle
from everynode.sim.faults.catalogue import ALL_FAULTS
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import Result, World, play

# Process crashes, lagging watches and lost requests, none of which touches a pod.
HARMLESS: Final = (
    *(f"F{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)),
    *(f"F{number}" for number in (18, 19, 23, 24, 25, 50)),
)
_FAULTS: Final = tuple(each for each in ALL_FAULTS if each.id in HARMLESS)
_SETS: Final = ("daemonsets.apps", "daemonsets.apps.kruise.io")
# Late enough for the first pods to exist, also if a process crashed or was slow.
_UPDATE_AT: Final = 45.0
_FROM: Final = 40.0
_UNTIL: Final = 100.0
_MAX_LISTED: Final = 3


def play_and_compare(plan: Plan) -> tuple[Result, World]:
    """Play a plan, and the plans it is to be compared with."""
    result, world = play(plan)
    if result.kept:
        compare(world)
    return msgspec.structs.replace(result, violations=tuple(world.violations)), world


def compare(world: World) -> None:
    """Compare a settled world with its references, and report the differences as violations."""
    if world.plan.compare_with_fresh:
        for text in differences_from_fresh(world)[:_MAX_LISTED]:
            world.report_violation("L6", f"not as its last spec alone would have it: {text}")
    if world.plan.compare_without_faults:
        for text in extra_pod_churn(world)[:_MAX_LISTED]:
            world.report_violation("L7", text)


# --- L6: the final state does not depend on the history -------------------------------------------


def differences_from_fresh(world: World) -> list[str]:
    """The nodes on which a settled world differs from one that began with the last spec."""
    cluster = world.record.cluster
    if not _is_forgetful(world):
        return []
    manifests = tuple(_last_specs(world))
    plan = Plan(
        seed=world.plan.seed,
        nodes=len(cluster.nodes),
        manifests=manifests,
        timing=world.plan.timing,
        quiet_at=1.0,
        name=f"{world.plan.name}, from its end",
    )
    _, other = play(plan)
    found = []
    for ds in sorted(cluster.sets.values(), key=lambda ds: ds.name):
        same = _daemonset_by_name(other.record.cluster, ds.name)
        after = normalised_state(cluster, ds)
        before = normalised_state(other.record.cluster, same) if same is not None else {}
        found += [f"{ds.name}: {text}" for text in differences(before, after)]
    return found


def _is_forgetful(world: World) -> bool:
    """Whether history must not matter: no node is held, and the nodes are the initial ones."""
    cluster = world.record.cluster
    oracles = [Oracle(cluster, ds, 0.0) for ds in cluster.sets.values()]
    forgets = all(each.rolling and each.unrestricted for each in oracles)
    names = [f"node-{number:04d}" for number in range(1, len(cluster.nodes) + 1)]
    labelled = any(each.name == "label-node" for each in world.plan.actions)
    return forgets and sorted(cluster.nodes) == names and not labelled


def _last_specs(world: World) -> list[dict[str, Any]]:
    found = []
    for kind in _SETS:
        for record in world.api.store.collection(kind).scan():
            obj = msgspec.json.decode(record.body)
            meta = {"name": record.name, "namespace": record.namespace}
            kept = {key: obj[key] for key in ("apiVersion", "kind", "spec")}
            found.append({**kept, "metadata": meta})
    return found


def _daemonset_by_name(cluster: ClusterState, name: str) -> DaemonSet | None:
    return next((ds for ds in cluster.sets.values() if ds.name == name), None)


# --- L7: faults that destroy no pod cost no pod ---------------------------------------------------


def generate_harmless(seed: int) -> Plan:
    """A plan with one update and faults that touch no pod."""
    rng = random.Random(f"{seed}/harmless")
    rolling = rng.choice(
        (
            {"maxUnavailable": 1},
            {"maxUnavailable": "50%"},
            {"maxSurge": 1, "maxUnavailable": 0},
            {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"},
            {"maxUnavailable": 2, "partition": 1},
        )
    )
    nodes = rng.choice((2, 3, 4, 6))
    update = Action("set-image", at=_UPDATE_AT, args={"image": "agent:v2"})
    faults = [
        fault.draw(rng, round(rng.uniform(_FROM, _UNTIL), 2), nodes)
        for fault in rng.sample(_FAULTS, rng.choice((2, 3, 4)))
    ]
    return Plan(
        seed=seed,
        nodes=nodes,
        manifests=(daemonset(rolling=rolling, min_ready=rng.choice((0, 3))),),
        timing=Timing(stop=rng.choice((0.5, 5.0))),
        controllers=rng.choice((1, 2)),
        actions=(update, *faults),
        quiet_at=_UNTIL + 30.0,
        compare_without_faults=True,
        name=f"seed {seed}",
    )


def is_comparable(plan: Plan) -> bool:
    """Whether pod churn can differ only because of the plan's faults."""
    timed = [each for each in plan.actions if each.at_request < 0]
    return all(each.at >= (_FROM if each.fault else _UPDATE_AT) for each in timed)


def extra_pod_churn(world: World) -> list[str]:
    """Pods created or deleted more or less often than in the same plan without faults."""
    plan = world.plan
    kept = tuple(each for each in plan.actions if not each.fault)
    _, sound = play(msgspec.structs.replace(plan, actions=kept))
    ours, theirs = pod_churn(world.record), pod_churn(sound.record)
    return [
        f"{node}: {ours[node, what]} pods were {what}, without faults {theirs[node, what]}"
        for node, what in sorted({**ours, **theirs})
        if ours[node, what] != theirs[node, what]
    ]
