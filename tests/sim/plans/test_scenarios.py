from __future__ import annotations

import pytest

from everynode.sim.plans.scenarios import SCENARIOS, Scenario
from everynode.sim.world import play


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda each: each.name)
def test_a_scenario_keeps_every_promise_and_ends_before_its_quiet_phase(scenario: Scenario) -> None:
    result, world = play(scenario.plan)
    assert result.violations == ()
    written = [
        commit.time
        for commit in world.record.commits
        if commit.actor.startswith("controller") and not commit.kind.startswith("leases")
    ]
    assert written[-1] < scenario.plan.quiet_at
    assert scenario.plan.nodes <= 4


def test_scenarios_are_found_by_their_names() -> None:
    assert len(SCENARIOS) >= 12
    assert all(name == each.name == each.plan.name for name, each in SCENARIOS.items())
