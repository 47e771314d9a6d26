from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.node.clock_skew import effective_time, has_future_time, pod_times
from tests.support.samples import NOW, pod, pod_json, read_pod

MOMENT = datetime.fromtimestamp(NOW, UTC)
STATE = '{"revision":"aaa","updateTimestamp":"%s"}'


def later(**changed: object) -> Pod:
    made = pod_json()
    made["status"] |= changed
    return read_pod(made)


def test_times_in_the_past_count_as_they_are() -> None:
    assert not has_future_time(pod(), MOMENT)
    assert effective_time(NOW, ()) == NOW
    assert effective_time(NOW, ((NOW + 1, 5.0),)) == NOW


@pytest.mark.parametrize(
    "found",
    [
        later(startTime=format_time(NOW + 1)),
        later(conditions=[{"type": "X", "lastTransitionTime": format_time(NOW + 1)}]),
        later(conditions=[{"type": "X", "lastTransitionTime": format_time(NOW + 1)[:-1]}]),
        later(
            containerStatuses=[
                {"name": "a", "state": {"terminated": {"finishedAt": format_time(NOW + 1)}}}
            ]
        ),
        pod(metadata={"creationTimestamp": format_time(NOW + 1)}),
        pod(annotations={"inplace-update-state": STATE % format_time(NOW + 1)}),
    ],
    ids=["start", "condition", "without a zone", "end", "creation", "update in place"],
)
def test_every_time_that_something_may_wait_for_is_looked_at(found: Pod) -> None:
    assert has_future_time(found, MOMENT)
    assert NOW + 1 in pod_times(found)


def test_when_a_pod_is_to_be_gone_may_lie_in_the_future() -> None:
    assert not has_future_time(pod(metadata={"deletionTimestamp": format_time(NOW + 30)}), MOMENT)
