from __future__ import annotations

from everynode.api import keys
from everynode.sim.checks.oracle import is_preparing
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.plans.scenarios import SCENARIOS
from everynode.sim.world import World, play

SLOW = Timing(stop=6.0)


def _at(at: float, what: str, seconds: float = 0.0, **args: object) -> Action:
    return Action(what, at=at, seconds=seconds, args=dict(args))


def _play(*actions: Action) -> World:
    plan = Plan(
        1,
        nodes=3,
        manifests=(daemonset(),),
        timing=SLOW,
        actions=actions,
        quiet_at=60.0,
    )
    result, world = play(plan)
    assert result.kept, result.violations
    return world


def _evicted(world: World) -> list[tuple[float, str]]:
    """The time and node of every eviction."""
    return [
        (commit.time, commit.before.node)
        for commit in world.record.commits
        if commit.kind == "pods"
        and commit.actor == "person"
        and not commit.before.terminating
        and commit.after.terminating
    ]


def test_who_drains_a_node_asks_again_until_the_budget_lets_its_pod_go() -> None:
    world = _play(
        _at(6.0, "protect", least=2),
        _at(8.0, "drain-node", 40.0, node=0),
        _at(9.0, "drain-node", 40.0, node=1),
    )
    (first, one), (second, other) = _evicted(world)
    assert (one, other) == ("node-0001", "node-0002")
    assert first == 8.0
    assert second > first + SLOW.stop, "while the first was down there was no room"


def test_a_budget_that_allows_nothing_keeps_every_pod() -> None:
    world = _play(_at(6.0, "protect", least=3), _at(8.0, "drain-node", 40.0, node=0))
    assert _evicted(world) == []


def test_no_pod_passes_an_unanswered_hook_until_the_hook_is_removed() -> None:
    _, world = play(SCENARIOS["stuck-hook"].plan)
    pods = [commit for commit in world.record.commits if commit.kind == "pods"]
    marked = [each.time for each in pods if each.after and is_preparing(each.after)]
    gone = [each.time for each in pods if each.after and each.after.terminating]
    assert len({each.after.uid for each in pods if each.after and is_preparing(each.after)}) == 1
    assert 8.0 < marked[0] < 20.0 < gone[0]


def test_an_update_does_not_wait_for_pull_pods_that_cannot_be_deleted() -> None:
    plan = SCENARIOS["stuck-puller"].plan
    _, world = play(plan)
    pods = [commit for commit in world.record.commits if commit.kind == "pods"]
    pull_pods = [
        each for each in pods if keys.PULL_POD_OWNER in (each.after or each.before).metadata.labels
    ]
    others = [each for each in pods if each not in pull_pods]
    stuck = [each for each in pull_pods if each.after and each.after.terminating]
    assert stuck
    assert others[-1].time < plan.quiet_at <= pull_pods[-1].time


def test_seeds_know_all_of_it() -> None:
    every = [{each.name for each in generate_plan(seed).actions} for seed in range(300)]
    for what in ("protect", "drain-node", "stick-pullers", "hold-hooks"):
        assert sum(what in whats for whats in every) >= 5
