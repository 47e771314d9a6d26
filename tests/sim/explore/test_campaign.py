from __future__ import annotations

from everynode.sim.explore.campaign import (
    CampaignTotals,
    outcome_of,
    play_safely,
    play_seed,
    run_in_parallel,
)
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan


def totals_of(jobs: int) -> CampaignTotals:
    totals = CampaignTotals()
    for outcomes in run_in_parallel(play_seed, range(1, 7), jobs=jobs):
        for outcome in outcomes:
            totals.add(outcome)
    return totals


def test_many_processes_report_the_same_as_one() -> None:
    one, two = totals_of(1), totals_of(2)
    assert one.runs == two.runs == 6
    assert one.trace == two.trace
    assert (one.seconds, one.commits, one.fault_counts) == (
        two.seconds,
        two.commits,
        two.fault_counts,
    )


def test_the_order_of_worlds_is_part_of_what_is_told() -> None:
    forth, back = CampaignTotals(), CampaignTotals()
    outcomes = [outcome_of(generate_plan(seed)) for seed in (1, 2)]
    for outcome in outcomes:
        forth.add(outcome)
    for outcome in reversed(outcomes):
        back.add(outcome)
    assert forth.trace != back.trace
    assert forth.commits == back.commits


def test_only_plans_that_broke_a_promise_are_kept() -> None:
    assert outcome_of(generate_plan(1)).plan is None
    bad = Action("set-image", at=5.0, args={"image": "agent:never-ready"})
    plan = Plan(1, nodes=1, manifests=(daemonset(),), actions=(bad,), quiet_at=8, patience=20)
    outcome = outcome_of(plan)
    assert outcome.plan == plan
    assert [breach.promise for breach in outcome.result.violations] == ["L1"]


def test_a_world_that_cannot_go_on_has_broken_a_promise() -> None:
    plan = Plan(1, nodes=1, manifests=(), actions=(Action("fly", at=1.0),), quiet_at=2)
    result = play_safely(plan)
    assert [breach.promise for breach in result.violations] == ["S0"]
    assert "fly" in result.violations[0].message
