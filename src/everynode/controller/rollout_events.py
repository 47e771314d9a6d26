"""Events about a rollout as a whole: started, aborted, stuck, paused, held, resumed, complete.

Each is reported once. A controller that starts goes on from the status that is stored, so that it
repeats nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.decide.actions import Notice
from everynode.decide.fleet.conditions import COMPLETE, PAUSED, READY, STALLED

_HELD: Final = "Held"
_STUCK: Final = "Stuck"


class ReportedRollout(msgspec.Struct, frozen=True):
    """What was last reported of the rollout of one DaemonSet."""

    target: str  # hash of the revision; empty before the first one
    complete: bool = False  # it was complete once: a pod that dies later starts no rollout
    standing: str = ""  # Paused, Held or Stuck
    stuck: frozenset[str] = frozenset()  # reasons that were reported for this target


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
    )


def report_rollout(
    before: ReportedRollout, target: str, status: DaemonSetStatus
) -> tuple[ReportedRollout, list[Notice]]:
    """Return what is reported after this status, and the events for what changed."""
    notices = []
    if before.target != target:
        notices += _started(before, target, status)
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
    return ReportedRollout(target, complete, standing, stuck), notices


def _started(before: ReportedRollout, target: str, status: DaemonSetStatus) -> list[Notice]:
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
    said = {each.type: each for each in status.conditions}
    paused = said.get(PAUSED)
    if paused is not None and paused.status == "True":
        return PAUSED, paused.reason, paused.message
    ready, stalled = said.get(READY), said.get(STALLED)
    if ready is not None and ready.status == "True" and ready.reason == _HELD:
        return _HELD, ready.reason, ready.message
    if stalled is not None and stalled.status == "True":
        return _STUCK, stalled.reason, stalled.message
    return "", "", ""


def _is_true(status: DaemonSetStatus, kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in status.conditions)
