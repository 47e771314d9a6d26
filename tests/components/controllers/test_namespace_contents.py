"""Conditions of a terminating namespace about its remaining contents."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.components.controllers.namespace_contents import (
    RemainingContent,
    RemainingObject,
    read_object,
)
from everynode.components.kubelet.image_config import CONFIG_MAPS
from everynode.kube.resources import DAEMONSETS, PODS

NOW = "2026-01-01T00:00:00Z"
FAILURE = "NamespaceDeletionContentFailure"
CONTENT = "NamespaceContentRemaining"


def told(remains: RemainingContent) -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in remains.conditions([], NOW)}


def pod(grace: int, *, phase: str = "Running") -> RemainingObject:
    body = {"spec": {"terminationGracePeriodSeconds": grace}, "status": {"phase": phase}}
    return read_object(PODS, msgspec.Raw(msgspec.json.encode(body)))


def other() -> RemainingObject:
    # A custom resource may have anything in its spec.
    return read_object(CONFIG_MAPS, msgspec.Raw(b'{"metadata":{},"spec":7,"status":"x"}'))


def test_nothing_left_is_nothing_wrong() -> None:
    remains = RemainingContent("team", seconds=9)
    assert not remains
    assert [each["status"] for each in told(remains).values()] == ["False"] * 5


@pytest.mark.parametrize(
    ("item", "status"),
    [(pod(30), "False"), (pod(5), "True"), (pod(30, phase="Succeeded"), "True")],
)
def test_a_pod_that_outstays_its_time_is_a_failure(item: RemainingObject, status: str) -> None:
    remains = RemainingContent("team", seconds=9)
    remains.add(PODS, [item])
    assert told(remains)[FAILURE]["status"] == status
    assert told(remains)[CONTENT]["status"] == "False"


def test_what_stays_without_a_reason_is_named() -> None:
    remains = RemainingContent("team", seconds=9)
    remains.add(DAEMONSETS, [other()])
    remains.add(CONFIG_MAPS, [other(), other()])
    conditions = told(remains)
    assert conditions[FAILURE]["message"] == (
        "Failed to delete all resource types, 2 remaining: "
        "unexpected items still remain in namespace: team for gvr: /v1, Resource=configmaps, "
        "unexpected items still remain in namespace: team for gvr: apps/v1, Resource=daemonsets"
    )
    assert conditions[CONTENT]["message"] == (
        "Some resources are remaining: configmaps. has 2 resource instances, "
        "daemonsets.apps has 1 resource instances"
    )


def test_a_condition_keeps_its_time_and_others_stay() -> None:
    theirs = {"type": "Theirs", "status": "True"}
    old = [{"type": FAILURE, "status": "False", "lastTransitionTime": "then"}, theirs]
    found = RemainingContent("team", seconds=9).conditions(old, NOW)
    assert [each["type"] for each in found[:2]] == [FAILURE, "Theirs"]
    assert found[0]["lastTransitionTime"] == "then"
    assert found[1] == theirs
    assert found[2]["lastTransitionTime"] == NOW
