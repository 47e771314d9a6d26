from __future__ import annotations

from typing import Any

from everynode.apiserver.output.table.pod import pod_row

Object = dict[str, Any]


def status_of(pod: Object) -> str:
    return str(pod_row(pod, 0.0).cells[2])


def test_the_first_waiting_container_gives_the_status() -> None:
    waiting = [{"state": {"waiting": {"reason": reason}}} for reason in ("First", "Second")]
    assert status_of({"status": {"phase": "Pending", "containerStatuses": waiting}}) == "First"


def test_a_pod_that_is_deleted_is_terminating_unless_it_has_ended() -> None:
    metadata = {"deletionTimestamp": "1970-01-01T00:00:00Z"}
    assert status_of({"metadata": metadata, "status": {"phase": "Running"}}) == "Terminating"
    assert status_of({"metadata": metadata, "status": {"phase": "Failed"}}) == "Failed"


def test_the_latest_restart_is_shown() -> None:
    def ended(time: str) -> Object:
        return {"restartCount": 1, "lastState": {"terminated": {"finishedAt": time}}}

    times = ("1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z", "1970-01-01T00:00:30Z")
    pod = {"status": {"containerStatuses": [ended(time) for time in times]}}
    assert pod_row(pod, 130.0).cells[3] == "3 (10s ago)"
