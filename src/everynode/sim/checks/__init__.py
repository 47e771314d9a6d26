"""Checks: the promises S and L of docs/rules.md, one class each, using only stored history."""

from __future__ import annotations

from typing import Final

from everynode.sim.checks.bad_version import BadVersion
from everynode.sim.checks.check import Check
from everynode.sim.checks.created_pod import CreatedPod
from everynode.sim.checks.evictions import Evictions
from everynode.sim.checks.finished_pods import FinishedPods
from everynode.sim.checks.hooks import Hooks
from everynode.sim.checks.inplace import InPlace
from everynode.sim.checks.leadership import OnlyLeaderWrites
from everynode.sim.checks.max_unavailable import MaxUnavailable
from everynode.sim.checks.no_ping_pong import NoPingPong
from everynode.sim.checks.one_pod_per_node import OnePodPerNode
from everynode.sim.checks.ownership import Ownership
from everynode.sim.checks.preconditions import Preconditions
from everynode.sim.checks.refused_target import RefusedTarget
from everynode.sim.checks.revisions import Revisions
from everynode.sim.checks.room import RoomForSuccessor
from everynode.sim.checks.status import StatusCounts
from everynode.sim.checks.status_conflicts import StatusConflicts
from everynode.sim.checks.write_cost import WriteCost

CHECKS: Final[tuple[type[Check], ...]] = (
    MaxUnavailable,
    BadVersion,
    RefusedTarget,
    RoomForSuccessor,
    OnePodPerNode,
    CreatedPod,
    Ownership,
    Revisions,
    InPlace,
    Hooks,
    Evictions,
    StatusCounts,
    Preconditions,
    OnlyLeaderWrites,
    FinishedPods,
    StatusConflicts,
    NoPingPong,
    WriteCost,
)
