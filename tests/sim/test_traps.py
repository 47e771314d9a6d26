from __future__ import annotations

import pytest

from everynode.sim.traps import TRAPS
from everynode.sim.world import play


@pytest.mark.parametrize("name", TRAPS)
def test_no_promise_is_broken_where_mistakes_show(name: str) -> None:
    result, _ = play(TRAPS[name])
    assert result.breaches == ()
