from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.node.availability import available_at
from everynode.decide.node.clock_skew import (
    behind_by,
    effective_time,
    has_future_time,
    kubelet_time,
    pod_times,
)
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


def test_a_restarted_container_has_a_time_that_is_looked_at() -> None:
    running = {"state": {"running": {"startedAt": format_time(NOW + 1)}}}
    assert not has_future_time(later(containerStatuses=[{"name": "a", **running}]), MOMENT)
    restarted = later(containerStatuses=[{"name": "a", "restartCount": 1, **running}])
    assert has_future_time(restarted, MOMENT)


def test_a_kubelet_that_starts_a_pod_before_it_exists_has_a_clock_that_is_behind() -> None:
    created, hour_before = NOW - 100, format_time(NOW - 3700)
    initialized = {"type": "Initialized", "lastTransitionTime": hour_before}
    made = pod_json()
    made["metadata"]["creationTimestamp"] = format_time(created)
    made["status"] |= {"startTime": hour_before, "conditions": [initialized]}
    behind = read_pod(made)
    assert behind_by(behind) == 3600.0
    assert kubelet_time(behind, datetime.fromtimestamp(NOW - 3650, UTC)) == NOW - 50


def test_a_time_after_a_clock_was_set_right_counts_from_when_it_was_first_seen() -> None:
    hour_before = format_time(NOW - 3700)
    made = pod_json()
    made["metadata"]["creationTimestamp"] = format_time(NOW - 100)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(NOW - 20)}
    initialized = {"type": "Initialized", "lastTransitionTime": hour_before}
    made["status"] |= {"startTime": hour_before, "conditions": [initialized, ready]}
    made["spec"].pop("readinessGates", None)
    found = read_pod(made)
    assert has_future_time(found, MOMENT)
    assert NOW - 20 + 3600 in pod_times(found)
    seen = ((NOW - 20 + 3600, NOW - 19),)
    assert kubelet_time(found, datetime.fromtimestamp(NOW - 20, UTC), seen) == NOW - 19
    assert available_at(found, 10, seen) == NOW - 9
    # While the clock is still behind, a corrected time is at most a rounding ahead of ours.
    ready["lastTransitionTime"] = format_time(NOW - 3600 + 1)
    assert not has_future_time(read_pod(made), MOMENT)


def test_one_odd_start_time_does_not_make_a_clock_be_behind() -> None:
    made = pod_json()
    made["metadata"]["creationTimestamp"] = format_time(NOW - 100)
    made["status"]["startTime"] = "1970-01-01T00:00:00Z"
    made["status"]["conditions"] = [
        {"type": "Initialized", "lastTransitionTime": format_time(NOW - 99)}
    ]
    assert behind_by(read_pod(made)) == 0.0
