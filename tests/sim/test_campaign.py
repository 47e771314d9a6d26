from __future__ import annotations

from everynode.sim.campaign import Tally, judge, outcome_of, play_seed, spread
from everynode.sim.draw import draw
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan


def tally_of(jobs: int) -> Tally:
    tally = Tally()
    for outcomes in spread(play_seed, range(1, 7), jobs=jobs):
        for outcome in outcomes:
            tally.add(outcome)
    return tally


def test_many_cores_tell_the_same_as_one() -> None:
    one, two = tally_of(1), tally_of(2)
    assert one.runs == two.runs == 6
    assert one.trace == two.trace
    assert (one.seconds, one.commits, one.struck) == (two.seconds, two.commits, two.struck)


def test_the_order_of_worlds_is_part_of_what_is_told() -> None:
    forth, back = Tally(), Tally()
    outcomes = [outcome_of(draw(seed)) for seed in (1, 2)]
    for outcome in outcomes:
        forth.add(outcome)
    for outcome in reversed(outcomes):
        back.add(outcome)
    assert forth.trace != back.trace
    assert forth.commits == back.commits


def test_only_plans_that_broke_a_promise_are_kept() -> None:
    assert outcome_of(draw(1)).plan is None
    bad = Happening("set-image", at=5.0, args={"image": "agent:never-ready"})
    plan = Plan(1, nodes=1, manifests=(daemonset(),), happenings=(bad,), quiet_at=8, patience=20)
    outcome = outcome_of(plan)
    assert outcome.plan == plan
    assert [breach.promise for breach in outcome.result.breaches] == ["L1"]


def test_a_world_that_cannot_go_on_has_broken_a_promise() -> None:
    plan = Plan(1, nodes=1, manifests=(), happenings=(Happening("fly", at=1.0),), quiet_at=2)
    result = judge(plan)
    assert [breach.promise for breach in result.breaches] == ["S0"]
    assert "fly" in result.breaches[0].message
