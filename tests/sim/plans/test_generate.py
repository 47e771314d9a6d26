from __future__ import annotations

import pytest

from everynode.sim.plans.generate import generate_plan


@pytest.mark.parametrize(
    ("seed", "hours", "patience"),
    [(1, 0, 3600), (60, 1, 7200), (1400, 3, 14400), (301353, 4, 18000)],
)
def test_a_world_has_its_hour_after_all_that_clocks_ahead_have_written(
    seed: int, hours: int, patience: float
) -> None:
    plan = generate_plan(seed)
    jumps = [each.args["by"] for each in plan.actions if each.name == "clock-jump"]
    assert jumps.count(3600) == hours
    assert plan.patience == patience
