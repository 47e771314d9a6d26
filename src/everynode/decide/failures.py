"""When a finished pod may be replaced (R7): a back-off that survives restarts.

Each replacement carries, in an annotation, how often its predecessors failed in a row and under
which target: `3@5f7c9d`. Nothing is kept in memory.
"""

from __future__ import annotations

import re
from typing import Final

from everynode.api.objects import Pod
from everynode.api.times import seconds

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 900.0
QUIET: Final = 1800.0  # a pod that lived this long was well: earlier failures are forgotten

_RECORD = re.compile(r"([0-9]{1,6})@(.+)")


def write_failures(count: int, target: str) -> str:
    """The annotation of a pod that replaces one which failed for the `count`-th time in a row."""
    return f"{count}@{target}"


def is_readable(pod: Pod) -> bool:
    """Whether the pod's record of failures is absent or makes sense; nonsense counts as none."""
    text = pod.metadata.annotations.failures
    return not text or _RECORD.fullmatch(text) is not None


def count_failures(pod: Pod, target: str) -> int:
    """How many pods in a row have failed here under this target, the finished pod included."""
    return 1 + (0 if _was_quiet(pod) else _carried(pod, target))


def due_at(pod: Pod, target: str) -> float:
    """When a finished pod may be replaced: its end, and 1 s doubling to 15 min after it."""
    doublings = min(count_failures(pod, target) - 1, 16)
    return ended_at(pod) + min(FIRST_DELAY * (1 << doublings), LONGEST_DELAY)


def ended_at(pod: Pod) -> float:
    """When a pod ended: its last container's end, or the last that was heard of it."""
    states = (status.state.terminated for status in pod.status.container_statuses)
    ends = [seconds(state.finished_at) for state in states if state and state.finished_at]
    if ends:
        return max(ends)
    changes = [
        seconds(each.last_transition_time)
        for each in pod.status.conditions
        if each.last_transition_time
    ]
    if changes:
        return max(changes)
    return seconds(pod.status.start_time) or _born_at(pod)


def _was_quiet(pod: Pod) -> bool:
    return ended_at(pod) - _born_at(pod) >= QUIET


def _born_at(pod: Pod) -> float:
    return seconds(pod.metadata.creation_timestamp) or 0.0


def _carried(pod: Pod, target: str) -> int:
    found = _RECORD.fullmatch(pod.metadata.annotations.failures)
    return int(found[1]) if found and found[2] == target else 0
