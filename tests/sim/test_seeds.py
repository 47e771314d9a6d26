"""The seeds that every run of the tests plays; `make simulate` plays many more."""

from __future__ import annotations

import pytest

from everynode.sim.differential import play_and_compare
from everynode.sim.plans.generate import generate_plan

GROUP = 10


@pytest.mark.parametrize("first", range(0, 200, GROUP))
def test_worlds_full_of_faults_keep_every_promise(first: int) -> None:
    broken = {}
    for seed in range(first, first + GROUP):
        result, _ = play_and_compare(generate_plan(seed))
        if not result.kept:
            broken[seed] = result.violations
    assert broken == {}
