from __future__ import annotations

import msgspec
import pytest

from everynode.api.objects import Container, Pod, PodSpec, Resources
from everynode.decide.fleet.verification import (
    NO_VERDICT,
    UNASKED,
    Verdict,
    has_room_afterwards,
)
from tests.support.fleet import OLD, pod

SMALL = Container(
    "agent", resources=Resources(requests={"cpu": "100m"}, limits={"cpu": 1, "memory": "1Gi"})
)


def _old(*containers: Container) -> Pod:
    return msgspec.structs.replace(pod(OLD, on="n1"), spec=PodSpec("n1", containers=containers))


def _quota(requested: str, used: str, limited: str) -> str:
    said = f"exceeded quota: few, requested: {requested}, used: {used}, limited: {limited}"
    return f'pods "agent-abc" is forbidden: {said}'


def test_a_verdict_speaks_for_one_target() -> None:
    assert Verdict("v2").accepts("v2")
    assert not Verdict("v2").accepts("v3")
    refused = Verdict("v2", "not today")
    assert not refused.accepts("v2")
    assert refused.refusal_of("v2") == "not today"
    assert refused.refusal_of("v3") == ""
    assert not NO_VERDICT.accepts("v2")
    assert UNASKED.accepts("v2")


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        (_quota("pods=1", "pods=10", "pods=10"), True),
        (_quota("count/pods=1", "count/pods=10", "count/pods=10"), True),
        (_quota("pods=1", "pods=11", "pods=10"), False),  # the quota was lowered
        (_quota("requests.cpu=100m", "requests.cpu=1", "requests.cpu=1"), True),
        (_quota("cpu=100m", "cpu=1", "cpu=1"), True),
        (_quota("requests.cpu=200m", "requests.cpu=1", "requests.cpu=1"), False),
        (_quota("requests.cpu=200m", "requests.cpu=900m", "requests.cpu=1"), True),
        (_quota("limits.cpu=1,pods=1", "limits.cpu=4,pods=4", "limits.cpu=4,pods=4"), True),
        (_quota("limits.cpu=2,pods=1", "limits.cpu=4,pods=4", "limits.cpu=4,pods=4"), False),
        (_quota("limits.memory=1Gi", "limits.memory=3Gi", "limits.memory=3Gi"), True),
        (_quota("requests.memory=1Gi", "requests.memory=3Gi", "requests.memory=3Gi"), False),
        (_quota("pods=1", "pods=?", "pods=10"), False),
        (_quota("pods=1", "cpu=1", "cpu=1"), False),
        (_quota("", "", ""), False),
        ("exceeded quota: few", False),
    ],
)
def test_a_quota_that_the_old_pod_gives_room_in_refuses_nothing(message: str, passes: bool) -> None:
    assert has_room_afterwards(message, _old(SMALL)) is passes


def test_amounts_of_all_containers_are_given_back() -> None:
    message = _quota("requests.cpu=200m", "requests.cpu=1", "requests.cpu=1")
    assert has_room_afterwards(message, _old(SMALL, SMALL))
