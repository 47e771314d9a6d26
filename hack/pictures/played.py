"""Played: what a simulated world shows at chosen times, and how long each of its pods lived."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.forecast.recording import NodeState, state_of
from everynode.sim.checks.oracle import Oracle
from everynode.sim.engine.clock import EPOCH
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import Commit
from everynode.sim.plans.plan import Plan
from everynode.sim.world import Result, World


class Snapshot(msgspec.Struct, frozen=True):
    """The fleet of a DaemonSet at one time."""

    time: float
    states: dict[str, NodeState]  # by node
    selected: frozenset[str]

    def count(self, *states: NodeState) -> int:
        """How many nodes are in one of these states."""
        return sum(state in states for state in self.states.values())


class PodLife(msgspec.Struct, frozen=True):
    """When a pod was created, became Ready, began to stop and was gone, in whole seconds."""

    node: str
    new: bool  # of the version that is rolled out
    created: float
    ready: float  # infinite if never, and so below
    stopping: float
    gone: float


def play(plan: Plan, times: Sequence[float] = ()) -> tuple[list[Snapshot], list[Commit]]:
    """Play a plan; return what it shows at these times and every commit. No promise may break."""
    loop = SimLoop(plan.seed)
    try:
        world = World(loop, plan)
        taken: list[Snapshot] = []
        for time in times:
            loop.call_at(time, _take, world, time, taken)
        result: Result = loop.run_until_complete(world.run())
    finally:
        loop.close()
    assert result.kept, result.violations
    return taken, world.record.commits


def _take(world: World, time: float, taken: list[Snapshot]) -> None:
    taken.append(_snapshot(world, time))


def _snapshot(world: World, time: float) -> Snapshot:
    cluster = world.record.cluster
    (ds,) = cluster.sets.values()
    oracle = Oracle(cluster, ds, EPOCH + time)
    states: dict[str, NodeState] = {}
    for name in sorted(cluster.nodes):
        pods = oracle.pods_on(name)
        available = [pod for pod in pods if oracle.is_available(pod) and not pod.terminating]
        state = state_of(pods, available, lambda hash: hash not in oracle.targets)
        if oracle.is_silent(name):
            state = NodeState.UNREACHABLE
        elif state is NodeState.OLD and name not in oracle.scope:
            state = NodeState.HELD
        states[name] = state
    return Snapshot(time, states, oracle.selected)


def pod_lives(commits: Sequence[Commit], *, new_from: float) -> list[PodLife]:
    """Return the pods of a world; those created later than `new_from` are of the new version."""
    never = float("inf")
    lives: dict[str, PodLife] = {}
    for commit in commits:
        if commit.kind != "pods":
            continue
        # Milliseconds depend on every request that the controller makes.
        time = round(commit.time)
        pod: Pod = commit.after if commit.after is not None else commit.before
        life = lives.get(pod.uid)
        if life is None:
            new = commit.time >= new_from
            life = PodLife(pod.node, new, time, never, never, never)
        ready = pod.condition(keys.READY)
        if life.ready == never and ready is not None and ready.status == "True":
            life = msgspec.structs.replace(life, ready=time)
        if life.stopping == never and pod.terminating:
            life = msgspec.structs.replace(life, stopping=time)
        if commit.after is None:
            life = msgspec.structs.replace(life, gone=time)
        lives[pod.uid] = life
    return list(lives.values())
