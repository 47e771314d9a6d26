from __future__ import annotations

import pytest

from everynode.sim.world import play
from tests.sim.regression_plans import REGRESSION_PLANS


@pytest.mark.parametrize("name", REGRESSION_PLANS)
def test_no_promise_is_broken_where_mistakes_show(name: str) -> None:
    result, _ = play(REGRESSION_PLANS[name])
    assert result.violations == ()
