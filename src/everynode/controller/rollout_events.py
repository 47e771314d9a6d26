"""Events about a rollout as a whole: started, aborted, stuck, paused, held, resumed, complete,
and a canary that grew.

Each is reported once. A controller that starts goes on from the status that is stored, so that it
repeats nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.decide.actions import Notice
from everynode.decide.fleet.conditions import COMPLETE, PAUSED, READY, STALLED

_HELD: Final = "Held"
_STUCK: Final = "Stuck"


class Canary(msgspec.Struct, frozen=True):
    """The part of the nodes that a partition by number releases."""

    partition: int
    desired: int
    released: int


class ReportedRollout(msgspec.Struct, frozen=True):
    """What was last reported of the rollout of one DaemonSet."""

    target: str  # hash of the revision; empty before the first one
    complete: bool = False  # it was complete once: a pod that dies later starts no rollout
    standing: str = ""  # Paused, Held or Stuck
    stuck: frozenset[str] = frozenset()  # reasons that were reported for this target
    canary: Canary | None = None  # the last one of this target


def find_canary(strategy: UpdateStrategy, *, desired: int, held: int) -> Canary | None:
    """Return the canary of a strategy that holds back a number of nodes; None for all others."""
    amount = strategy.partition
    rolling = strategy.type is UpdateStrategyType.ROLLING and not strategy.paused
    if not rolling or amount.percent or not amount.value:
        return None
    return Canary(amount.value, desired, desired - held)


def stored_rollout(ds: DaemonSet, target: str, *, completed: bool) -> ReportedRollout:
    """Return what the stored status says was reported; `completed` is what the revision says."""
    status = ds.status
    known = status.update_revision or (target if status.observed_generation > 0 else "")
    standing, reason, _ = _standing(status)
    return ReportedRollout(
        target=known,
        complete=_is_true(status, COMPLETE) or (completed and known == target),
        standing=standing,
        stuck=frozenset((reason,)) if standing == _STUCK else frozenset(),
        canary=_stored_canary(ds) if standing == _HELD else None,
    )


def _stored_canary(ds: DaemonSet) -> Canary | None:
    """Return the canary of a status that is Held: all released nodes are updated."""
    status = ds.status
    if status.observed_generation != ds.metadata.generation:
        return None  # the partition may have been another one
    held = status.desired - status.updated
    return find_canary(ds.strategy, desired=status.desired, held=held)


def report_rollout(
    before: ReportedRollout, target: str, status: DaemonSetStatus, canary: Canary | None = None
) -> tuple[ReportedRollout, list[Notice]]:
    """Return what is reported after this status, and the events for what changed."""
    notices = []
    if before.target != target:
        notices += _start_notices(before, target, status)
        before = ReportedRollout(target)
    complete = before.complete or _is_true(status, COMPLETE)
    if complete and not before.complete:
        text = f"Revision {target} is available on all {status.desired} nodes"
        notices.append(Notice("Normal", "RolloutComplete", text))
    standing, reason, message = _standing(status) if not complete else ("", "", "")
    stuck = before.stuck
    if standing == _STUCK:
        if reason not in stuck:
            notices.append(Notice("Warning", "RolloutStuck", f"{reason}: {message}"))
        stuck |= {reason}
    elif standing != before.standing:
        if standing:
            notices.append(Notice("Normal", f"Rollout{standing}", message))
        elif before.standing == PAUSED and not complete:
            notices.append(Notice("Normal", "RolloutResumed", f"Revision {target} is rolled out"))
    if not complete:
        notices += _grown(before.canary, canary, target)
    return ReportedRollout(target, complete, standing, stuck, canary), notices


def _grown(before: Canary | None, now: Canary | None, target: str) -> list[Notice]:
    """Return the warning that nodes which joined have let more nodes into the canary."""
    if before is None or now is None or now.partition != before.partition:
        return []
    if now.desired <= before.desired or now.released <= before.released:
        return []
    text = (
        f"Revision {target} is for {now.released} nodes now, {before.released} before: there are"
        f" {now.desired} nodes, {before.desired} before, and partition {now.partition} is a number"
        " of nodes. A percentage keeps the canary's share"
    )
    return [Notice("Warning", "CanaryGrew", text)]


def _start_notices(before: ReportedRollout, target: str, status: DaemonSetStatus) -> list[Notice]:
    text = f"Rolling out revision {target} to {status.desired} nodes"
    started = Notice("Normal", "RolloutStarted", text)
    if not before.target or before.complete:
        return [started]
    text = f"Revision {before.target} was replaced by {target} before it was complete"
    return [Notice("Warning", "RolloutAborted", text), started]


def _standing(status: DaemonSetStatus) -> tuple[str, str, str]:
    """Return Paused, Held, Stuck or nothing, with the reason and the message of a condition.

    The native kind is never Stuck: it has no condition that waits until nothing has moved for a
    while, and a rollout that goes well stands still for moments.
    """
    conditions = {each.type: each for each in status.conditions}
    paused = conditions.get(PAUSED)
    if paused is not None and paused.status == "True":
        return PAUSED, paused.reason, paused.message
    ready, stalled = conditions.get(READY), conditions.get(STALLED)
    if ready is not None and ready.status == "True" and ready.reason == _HELD:
        return _HELD, ready.reason, ready.message
    if stalled is not None and stalled.status == "True":
        return _STUCK, stalled.reason, stalled.message
    return "", "", ""


def _is_true(status: DaemonSetStatus, kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in status.conditions)
