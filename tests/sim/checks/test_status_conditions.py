from __future__ import annotations

from typing import Any

import pytest

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.sim.checks.status_conditions import condition_faults
from tests.support.fleet import NOW, at, make

DONE = {"Complete": "True", "Ready": "True", "Reconciling": "False", "Stalled": "False"}
WAITS = {"Complete": "False", "Ready": "False", "Reconciling": "False", "Stalled": "False"}


def faults(said: dict[str, str], *, updated: int = 3, **more: Any) -> list[str]:
    """What the check finds in a status of three nodes whose conditions have these statuses."""
    flavour = more.get("flavour", Flavour.ADVANCED)
    moment = at(NOW - more.get("for_seconds", 400))
    conditions = tuple(Condition(name, state, "", "", moment) for name, state in said.items())
    status = DaemonSetStatus(desired=3, updated=updated, available=3, conditions=conditions)
    return list(condition_faults(make_set(flavour), status, NOW))


def make_set(flavour: Flavour) -> DaemonSet:
    return make(flavour=flavour).ds


@pytest.mark.parametrize(
    ("said", "more", "fault"),
    [
        (DONE, {}, ""),
        (WAITS, {"updated": 2}, ""),
        (DONE, {"updated": 2}, "Complete is True with 2 updated"),
        (WAITS, {}, "Complete is False with 3 updated"),
        (DONE | {"Reconciling": "True"}, {}, "Ready and Reconciling are True together"),
        (DONE | {"Ready": "False"}, {}, "complete and not Ready"),
        (WAITS | {"Stalled": "True"}, {"updated": 2}, ""),
        (WAITS | {"Stalled": "True"}, {"updated": 2, "for_seconds": 200}, "Stalled is set 200 s"),
        ({"Complete": "True"}, {"flavour": Flavour.NATIVE}, ""),
        (DONE, {"flavour": Flavour.NATIVE}, "a native DaemonSet was given"),
    ],
)
def test_conditions_are_compared_with_the_counts_and_with_each_other(
    said: dict[str, str], more: dict[str, Any], fault: str
) -> None:
    found = faults(said, **more)
    assert len(found) == bool(fault)
    assert all(fault in each for each in found)
