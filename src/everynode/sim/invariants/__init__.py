"""The promises, one small class each, judged by the store's history alone."""

from __future__ import annotations

from typing import Final

from everynode.sim.invariants.budget import Budget
from everynode.sim.invariants.conditions import Preconditions
from everynode.sim.invariants.placing import OnePerNode
from everynode.sim.invariants.promise import Invariant

INVARIANTS: Final[tuple[type[Invariant], ...]] = (Budget, OnePerNode, Preconditions)
