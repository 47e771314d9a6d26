"""The promises, one small class each, judged by the store's history alone."""

from __future__ import annotations

from typing import Final

from everynode.sim.invariants.budget import Budget
from everynode.sim.invariants.circling import Circling
from everynode.sim.invariants.conditions import Preconditions
from everynode.sim.invariants.creating import RightRevision
from everynode.sim.invariants.ended import Ended
from everynode.sim.invariants.evictions import Evictions
from everynode.sim.invariants.fights import Fights
from everynode.sim.invariants.harm import Harm
from everynode.sim.invariants.hooks import Hooks
from everynode.sim.invariants.inplace import InPlace
from everynode.sim.invariants.leading import Leading
from everynode.sim.invariants.ownership import Ownership
from everynode.sim.invariants.placing import OnePerNode
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.revisions import Revisions
from everynode.sim.invariants.status import Status
from everynode.sim.invariants.thrift import Thrift

INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    Budget,
    Harm,
    OnePerNode,
    RightRevision,
    Ownership,
    Revisions,
    InPlace,
    Hooks,
    Evictions,
    Status,
    Preconditions,
    Leading,
    Ended,
    Fights,
    Circling,
    Thrift,
)
