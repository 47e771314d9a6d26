from __future__ import annotations

from typing import Any

from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.sim.checks.pod_health import clock_lag, proves_from, sick_from, trusted_from
from tests.support.samples import NOW, pod_json, read_pod


def condition(kind: str, status: str, since: float) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": format_time(since)}


def told(*, created: float = NOW - 100, started: float = NOW - 100, **status: Any) -> Pod:
    made = pod_json()
    made["metadata"]["creationTimestamp"] = format_time(created)
    made["status"] |= {"startTime": format_time(started), **status}
    return read_pod(made)


def container(**more: Any) -> list[dict[str, Any]]:
    running = {"running": {"startedAt": format_time(NOW - 10)}}
    return [{"name": "agent", "state": running, **more}]


def test_a_kubelet_that_starts_a_pod_before_it_exists_lags() -> None:
    initialized = [condition("Initialized", "True", NOW - 3700)]
    assert clock_lag(told(started=NOW - 3700, conditions=initialized)) == 3600.0
    assert clock_lag(told(started=NOW - 3700, conditions=[])) == 0.0


def test_a_restart_is_forgiven_after_five_minutes() -> None:
    assert trusted_from(told(containerStatuses=container())) == 0.0
    assert trusted_from(told(containerStatuses=container(restartCount=1))) == NOW + 290


def test_a_ready_pod_proves_after_two_seconds() -> None:
    ready = [condition("Ready", "True", NOW - 1)]
    assert proves_from(told(conditions=ready, containerStatuses=[])) == NOW + 1


def test_a_pod_that_was_ready_is_sick_after_thirty_seconds() -> None:
    unready = [condition("Ready", "False", NOW - 5)]
    assert sick_from(told(conditions=unready, containerStatuses=[])) == NOW + 25
    assert sick_from(told(started=NOW - 5, conditions=unready, containerStatuses=[])) == 0.0
    waiting = container(state={"waiting": {"reason": "CrashLoopBackOff"}})
    assert sick_from(told(conditions=unready, containerStatuses=waiting)) == 0.0
