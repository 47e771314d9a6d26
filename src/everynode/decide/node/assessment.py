"""Assessment: the decision about one node, and its counts for the totals of the DaemonSet."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import msgspec

from everynode.decide.node.eligibility import Eligibility
from everynode.decide.node.reasons import Reason
from everynode.decide.node.steps import Step


class Queue(enum.IntEnum):
    """The queues in which nodes wait for a limit; a node is in at most one.

    Queues named NO_BUDGET hold nodes that are unavailable anyway: updating them costs nothing.
    """

    NONE = 0
    CREATE = 1  # a pod is missing
    MAINTAIN = 2  # clean-up, gates, in-place updates under way: nothing that costs budget
    REPLACE_UNREADY_NO_BUDGET = 3  # an unready old pod, on a node that blocks replacements anyway
    REPLACE_UNREADY = 4  # an unready old pod
    UPDATE_READY_NO_BUDGET = 5  # a Ready old pod, on a node that is down anyway
    UPDATE_READY = 6  # a Ready old pod; the node goes down with it
    CREATE_BESIDE_TERMINATING = 7  # surge: a pod beside one that terminates
    SURGE = 8  # surge: a target pod beside a Ready old one
    END_SURGE = 9  # surge: an old pod beside an available target pod that proves nothing yet
    WITHDRAW = 10  # an old pod whose toleration the target withdraws; its node gets no other one
    UPDATE_READY_LAST = 11  # like UPDATE_READY, on a node whose maintenance is planned
    SURGE_LAST = 12  # like SURGE, on a node whose maintenance is planned
    RECREATE_NO_BUDGET = 13  # an old pod that was made unready to be changed, and cannot be


class NodeCounts(NamedTuple):
    """What a node adds to the totals of the DaemonSet. A sum of counts has the same type.

    Build it by field name, never by position.
    """

    # The status fields, by the pods that exist.
    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    held: int = 0
    not_started: int = 0  # neither updated nor held, and the update has not begun
    # The budget (R4), with own writes at the worse of before and after. Reachable nodes in scope:
    down: int = 0
    under_way: int = 0  # unready pods on other nodes wait for it
    target_available: int = 0
    target_proven: int = 0  # nodes with a target pod that shows that the target works
    unproven: int = 0  # nodes that are up only by a target pod that does not show it yet
    given_up: int = 0  # down, but sick before the target came, and not counted while few
    # Nodes in scope that are set aside: their kubelet does not report, or they are in maintenance.
    unreachable: int = 0
    unreachable_down: int = 0
    unreachable_under_way: int = 0
    unreachable_after_update: int = 0  # the target may have caused it
    # Nodes with two pods (R5).
    two_pods: int = 0
    unreachable_two_pods: int = 0
    # Own writes that are not seen yet.
    creating: int = 0
    changing: int = 0
    port_conflict: int = 0  # the old pod holds a host port that the surge pod needs
    removing: int = 0  # nodes that may not keep their pod: it is removed without a budget
    available_any: int = 0  # nodes with an available pod, whichever of their pods it is
    # The conditions.
    done: int = 0  # updated and available
    as_declared: int = 0  # done, or available where the spec leaves the node as it is
    moving: int = 0  # progressing, and not merely trying again what failed
    silent_held: int = 0  # not as declared, and set aside
    silent_unreached: int = 0  # the same of a node in scope that has no target pod


NO_COUNTS: Final = NodeCounts()


class TargetFacts(msgspec.Struct, frozen=True, gc=False):
    """The facts about a node from which the scope (R2) is computed."""

    holds_target: bool
    selected: bool
    eligibility: Eligibility  # for the target's template


class Assessment(msgspec.Struct, frozen=True, gc=False):
    """The decision about one node; it holds until `wake_at` or until the node changes."""

    name: str
    in_scope: bool
    revision: str  # hash of the revision that pods of the node should have
    eligibility: Eligibility  # for the target's template
    counts: NodeCounts
    reason: Reason
    queue: Queue = Queue.NONE
    steps: tuple[Step, ...] = ()
    wake_at: float | None = None


def earliest(now: float, *times: float | None) -> float | None:
    """Return the earliest time after `now`; None if there is none."""
    first: float | None = None
    for time in times:
        if time is not None and time > now and (first is None or time < first):
            first = time
    return first
