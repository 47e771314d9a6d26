"""Back-off of failed pods (R7): when a finished pod may be replaced. It survives restarts.

An annotation of each replacement holds how many pods before it failed in a row and under which
target: `3@5f7c9d`. Nothing is kept in memory.
"""

from __future__ import annotations

import re
from typing import Final

from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.backoff import Backoff
from everynode.decide.node.clock_skew import FutureTimes, behind_by, effective_time

DELAY: Final = Backoff(first=1.0, longest=900.0)  # between the pods of a node that end
HEALTHY_AFTER: Final = 1800.0  # a pod that ran this long resets the count of failures

_FAILING_AGAIN = 3  # failures in a row

_RECORD = re.compile(r"([0-9]{1,6})@(.+)")


def write_failures(count: int, target: str) -> str:
    """Return the annotation of a pod that is created after `count` failures in a row."""
    return f"{count}@{target}"


def is_record_valid(pod: Pod) -> bool:
    """Whether the pod's failures annotation is absent or valid; an invalid one counts as 0."""
    text = pod.metadata.annotations.failures
    return not text or _RECORD.fullmatch(text) is not None


def count_failures(pod: Pod, target: str, ahead: FutureTimes = ()) -> int:
    """Return how many pods in a row failed on the node under this target, with this pod."""
    return 1 + (0 if _ran_long(pod, ahead) else _recorded_failures(pod, target))


def is_failing_again(pod: Pod, target: str, ahead: FutureTimes = ()) -> bool:
    """Whether several pods in a row failed here under the target: the next one is a retry."""
    if not pod.finished:
        return _recorded_failures(pod, target) >= _FAILING_AGAIN
    return count_failures(pod, target, ahead) >= _FAILING_AGAIN


def replace_at(pod: Pod, target: str, ahead: FutureTimes = ()) -> float:
    """Return when a finished pod may be replaced: 1 s after its end, doubling up to 15 min."""
    return ended_at(pod, ahead) + DELAY.delay(count_failures(pod, target, ahead))


def ended_at(pod: Pod, ahead: FutureTimes = ()) -> float:
    """Return when a pod ended: the end of its last container, or its last known time.

    The result is never before creationTimestamp, which comes from the API server's clock: on a
    node whose clock is behind, failed pods would otherwise be replaced without a delay.
    """
    states = (status.state.terminated for status in pod.status.container_statuses)
    ends = [seconds(state.finished_at) for state in states if state and state.finished_at]
    if not ends:
        ends = [
            seconds(each.last_transition_time)
            for each in pod.status.conditions
            if each.last_transition_time
        ]
    if not ends and pod.status.start_time is not None:
        ends = [seconds(pod.status.start_time)]
    behind = behind_by(pod)
    ends = [effective_time(end + behind, ahead) for end in ends]
    return max([*ends, _created_at(pod, ahead)])


def _ran_long(pod: Pod, ahead: FutureTimes) -> bool:
    return ended_at(pod, ahead) - _created_at(pod, ahead) >= HEALTHY_AFTER


def _created_at(pod: Pod, ahead: FutureTimes) -> float:
    return effective_time(seconds(pod.metadata.creation_timestamp) or 0.0, ahead)


def _recorded_failures(pod: Pod, target: str) -> int:
    found = _RECORD.fullmatch(pod.metadata.annotations.failures)
    return int(found[1]) if found and found[2] == target else 0
