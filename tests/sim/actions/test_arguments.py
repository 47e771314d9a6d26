from __future__ import annotations

from typing import Any

import pytest

from everynode.sim.actions.arguments import argument_error
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.plan import Action


def test_the_arguments_that_seeds_draw_are_right() -> None:
    plans = [generate_plan(seed) for seed in range(300)]
    errors = [
        argument_error(action, controllers=plan.controllers)
        for plan in plans
        for action in plan.actions
    ]
    assert not any(errors)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("set-image", {}, "'set-image' needs the argument 'image'"),
        ("set-image", {"image": 7}, "Expected `str`, got `int` - at `$.image`"),
        ("set-image", {"picture": "a"}, "unknown field `picture`"),
        ("delete-pod", {"which": "first"}, "Expected `int`, got `str` - at `$.which`"),
        ("crash", {"index": 2}, "controller 2, there are 2 from 0"),
        ("restart", {"index": -1}, "controller -1"),
        ("refuse", {"status": {}}, "an HTTP status from 400 to 599"),
        ("refuse-watch", {"status": 200}, "an HTTP status from 400 to 599"),
        ("write-status", {"status": 3}, "is an object"),
        ("add-node", {"node": 3}, "is a name"),
        ("mass-join", {"count": 10**9}, "at most 1000 nodes"),
    ],
)
def test_wrong_arguments_are_named(name: str, args: dict[str, Any], message: str) -> None:
    error = argument_error(Action(name, args=args), controllers=2)
    assert message in error
    assert "\n" not in error
