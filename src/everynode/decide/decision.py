"""Decision: what a ledger decides: actions, the status, and what to observe before the next one."""

from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSetStatus
from everynode.decide.actions import Notice, PodAction
from everynode.decide.fleet.verification import Verification


class FailedNode(msgspec.Struct, frozen=True):
    """A node whose evaluation raised, and the error."""

    node: str
    error: Exception


class Decision(msgspec.Struct, frozen=True):
    """Actions to take now, the status to write, and when to decide again if nothing changes."""

    actions: tuple[PodAction, ...]
    status: DaemonSetStatus
    wake_at: float | None = None
    notices: tuple[Notice, ...] = ()
    failed_nodes: tuple[FailedNode, ...] = ()  # since the last decision
    complete: bool = False  # every node that should have a pod has an available target pod
    verification: Verification | None = None  # the dry run without which no pod is taken
    room_checks: tuple[str, ...] = ()  # nodes whose room is to be observed before a pod is taken
