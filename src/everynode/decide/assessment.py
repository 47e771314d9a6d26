"""What is said of one node, and how nodes add up to a fleet."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import msgspec

from everynode.decide.eligibility import Eligibility
from everynode.decide.reasons import Reason
from everynode.decide.steps import Step


class Queue(enum.IntEnum):
    """Where a node waits for what it wants; a node waits in one place at most."""

    NONE = 0
    CREATE = 1  # a pod is missing
    WORK = 2  # something to put in order that costs nothing of the budget
    CURE_FREE = 3  # a pod that is not Ready is to go, on a node that is under way as it is
    CURE = 4  # an old pod that is not Ready
    TAKE_FREE = 5  # a Ready pod is to go, on a node that is down all the same
    TAKE = 6  # a Ready old pod whose taking takes the node down
    BESIDE = 7  # surge: a pod beside one that is on its way out
    SURGE = 8  # surge: a target pod beside a Ready old one


class Profile(NamedTuple):
    """What a node adds to the sums of the fleet. The sum of profiles is a profile."""

    # The status, by the pods that are there.
    wanted: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    held: int = 0
    to_come: int = 0  # neither updated nor held, and nothing has been done for it yet
    # The budget, own writes at the worse of before and after: nodes in scope that are reachable,
    down: int = 0
    under_way: int = 0
    proven: int = 0
    # and those whose kubelet is silent.
    lost: int = 0
    lost_down: int = 0
    lost_under_way: int = 0
    lost_moved: int = 0
    # Nodes with two pods, own writes under way, host ports that leave no room for a surge.
    doubled: int = 0
    lost_doubled: int = 0
    creating: int = 0
    changing: int = 0
    clashing: int = 0
    served: int = 0  # nodes with an available pod, whichever of theirs it is


EMPTY: Final = Profile()


class Survey(msgspec.Struct, frozen=True, gc=False):
    """What can be said of a node before its place in the scope is known."""

    holds_target: bool
    selected: bool
    eligibility: Eligibility  # by the target's template


class Assessment(msgspec.Struct, frozen=True, gc=False):
    """One node, judged at one moment; it holds until `wake_at` or until the node changes."""

    name: str
    in_scope: bool
    revision: str  # hash of the revision the node lives by
    eligibility: Eligibility  # by the target's template
    profile: Profile
    reason: Reason
    queue: Queue = Queue.NONE
    steps: tuple[Step, ...] = ()
    wake_at: float | None = None
