"""What a list of a node's pods says about the room for another one."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.controller.node_resources import (
    NodePod,
    NodeResources,
    TargetPod,
    build_room,
    decode_allocatable,
    decode_pods,
    decode_target,
    node_request,
    pods_request,
    unbound_requests,
)
from everynode.decide.node.room import Room

TARGET = TargetPod({"cpu": 150})


def _pod(uid: str, cpu: str, *, owner: str = "", **more: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": owner, "controller": True}
    container = {"name": "a", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"uid": uid, "ownerReferences": [reference] if owner else []},
        "spec": {"containers": [container], **more.pop("spec", {})},
        **more,
    }


def _pods(*pods: dict[str, Any]) -> tuple[NodePod, ...]:
    return decode_pods(msgspec.json.encode({"metadata": {}, "items": list(pods)}))


def _room(*pods: dict[str, Any], target: TargetPod = TARGET, **more: Any) -> Room:
    seen = NodeResources({"cpu": 1000, "pods": 10}, _pods(*pods))
    return build_room(seen, target, "ds", revision="v2", now=5.0, **more)


def test_only_the_pods_of_one_node_are_asked_for_and_not_those_that_are_finished() -> None:
    request = pods_request("n1", 17)
    assert (request.method, request.path) == ("GET", "/api/v1/pods")
    assert dict(request.query) == {
        "fieldSelector": "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed",
        "resourceVersion": "17",
        "resourceVersionMatch": "NotOlderThan",
    }
    assert dict(node_request("n1", 0).query) == {
        "fieldSelector": "metadata.name=n1",
        "resourceVersion": "0",
    }


def test_own_pods_are_kept_apart_from_those_of_others() -> None:
    room = _room(_pod("a", "300m"), _pod("b", "200m", owner="else"), _pod("c", "100m", owner="ds"))
    assert room.used == {"cpu": 500, "pods": 2}
    assert room.own == {"c": {"cpu": 100, "pods": 1}}
    assert room.requests == {"cpu": 150}


def test_pods_of_lower_priority_would_give_way() -> None:
    pods = (
        _pod("a", "300m", spec={"priority": 10}),
        _pod("b", "200m"),
        _pod("c", "100m", owner="ds", spec={"priority": 10}),
    )
    assert _room(*pods, target=TargetPod({}, 11)).preemptible == {"cpu": 500, "pods": 2}
    assert _room(*pods, target=TargetPod({}, 10)).preemptible == {"cpu": 200, "pods": 1}
    assert _room(*pods, target=TargetPod({}, 11, preempts=False)).preemptible == {}
    # Where admission could not be asked, the pod before it tells its priority.
    assert _room(*pods, target=TargetPod({})).preemptible == {"cpu": 200, "pods": 1}


def test_without_a_scheduler_pods_give_way_to_critical_ones_alone() -> None:
    pods = (_pod("a", "300m"),)
    assert _room(*pods, target=TargetPod({}, 1000), by_scheduler=False).preemptible == {}
    critical = TargetPod({}, 2_000_001_000)
    assert _room(*pods, target=critical, by_scheduler=False).preemptible == {"cpu": 300, "pods": 1}


def _resized(spec: str, allocated: str, *reasons: str) -> dict[str, Any]:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": r} for r in reasons]
    has = [{"name": "a", "allocatedResources": {"cpu": allocated}}]
    return _pod("a", spec, status={"containerStatuses": has, "conditions": conditions})


def test_a_pod_that_is_being_resized_counts_by_the_larger_amount() -> None:
    assert _room(_resized("300m", "200m")).used["cpu"] == 300
    assert _room(_resized("200m", "300m")).used["cpu"] == 300
    assert _room(_resized("300m", "200m", "Deferred")).used["cpu"] == 300
    assert _room(_resized("300m", "200m", "Infeasible")).used["cpu"] == 200


def test_pods_that_others_are_replacing_are_allowed_for() -> None:
    assert _room(_pod("a", "300m"), claimed=[{"cpu": 50}]).used == {"cpu": 350, "pods": 1}
    [old] = _pods(_pod("x", "100m"))
    assert unbound_requests({"cpu": 150, "memory": 5}, [old]) == {"cpu": 50, "memory": 5}
    assert unbound_requests({"cpu": 50}, [old]) == {"cpu": 0}


def test_a_node_that_is_gone_or_has_not_reported_can_allocate_nothing() -> None:
    node = {"status": {"allocatable": {"cpu": "2", "pods": "110"}}}
    read = {"metadata": {}, "items": [node]}
    assert decode_allocatable(msgspec.json.encode(read)) == {"cpu": 2000, "pods": 110}
    assert decode_allocatable(b'{"metadata": {}, "items": []}') == {}
    assert decode_allocatable(b'{"metadata": {}, "items": [{"metadata": {}}]}') == {}


def test_admission_says_what_the_pod_of_the_target_takes() -> None:
    answered = _pod("a", "100m", spec={"overhead": {"cpu": "20m"}, "priority": 7})
    assert decode_target(msgspec.json.encode(answered)) == TargetPod({"cpu": 120}, 7)
    never = _pod("a", "100m", spec={"preemptionPolicy": "Never", "priority": 7})
    assert decode_target(msgspec.json.encode(never)) == TargetPod({"cpu": 100}, 7, preempts=False)
