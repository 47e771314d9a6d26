from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.forecast.seeded_pod import describe_pod

NOW = 1_767_225_600.0
RUNNING = {"running": {"startedAt": format_time(NOW)}}


def pod(
    *,
    age: float = 0.0,
    deleted: float | None = None,
    ready: bool = False,
    state: Any = None,
    restarts: int = 0,
) -> Pod:
    """A pod that is so old, or was deleted that long ago with a grace period of 30 s."""
    metadata: dict[str, Any] = {"name": "a", "creationTimestamp": format_time(NOW - age)}
    if deleted is not None:
        metadata["deletionTimestamp"] = format_time(NOW - deleted + 30)
    statuses = [{"name": "a", "restartCount": restarts, "state": state or {}}] if state else []
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"containerStatuses": statuses, "conditions": conditions}
    return msgspec.convert({"metadata": metadata, "status": status}, Pod)


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod(ready=True, state=RUNNING, age=1000), ""),
        # What takes time needs the rest of it.
        (pod(deleted=4), "stop=6.000"),
        (pod(deleted=400), "stop=1.000"),
        (pod(age=5), "start=15.000 ready=0"),
        (pod(age=5, state=waiting("ContainerCreating")), "start=15.000 ready=0"),
        (pod(age=5, state=RUNNING), "ready=15.000"),
        # What fails goes on failing.
        (pod(age=5, state=waiting("ImagePullBackOff")), "fail=pull"),
        (pod(age=5, state=waiting("CreateContainerConfigError")), "fail=pull"),
        (pod(age=5, state=waiting("CrashLoopBackOff")), "fail=crash"),
        (pod(age=5, state=RUNNING, restarts=3), "fail=crash"),
        (pod(age=500, state=RUNNING), "fail=probe"),
    ],
)
def test_how_a_pod_goes_on(given: Pod, expected: str) -> None:
    assert describe_pod(given, NOW, grace=30.0, start=20.0, stop=10.0) == expected
