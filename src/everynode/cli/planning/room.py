"""Room: on which nodes a pod of the new version does not fit. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from everynode.api.resources import (
    PODS,
    add_amounts,
    growing_resources,
    missing_room,
    parse_amounts,
    pod_requests,
    read_spec,
)
from everynode.forecast.node_plans import NodeAction
from everynode.forecast.planned_rollout import RolloutPlan
from everynode.inspect.stored_objects import StoredObjects

Object = dict[str, Any]


def matters(live: Object | None, new: Object) -> bool:
    """Whether a new pod may need more room than its node has: otherwise nothing more is read."""
    rolling = (new["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    if live is None or rolling.get("maxSurge") not in (None, 0, "0", "0%"):
        return bool(requests_of(new))
    return bool(growing_resources(requests_of(live), requests_of(new)))


def requests_of(ds: Object) -> dict[str, int]:
    """Return what a pod of the DaemonSet's template requests; nothing if it cannot be read."""
    try:
        return pod_requests(read_spec(ds["spec"]["template"].get("spec") or {}))
    except msgspec.ValidationError:
        return {}


def priority_of(live: Object | None, new: Object, pods: Iterable[bytes]) -> int:
    """Return the priority of new pods, as far as the pods that run tell it."""
    before, after = (
        (ds["spec"]["template"].get("spec") or {}).get("priorityClassName") if ds else None
        for ds in (live, new)
    )
    first = next(iter(pods), None)
    if first is None or before != after:
        return 0
    return msgspec.json.decode(first, type=Object)["spec"].get("priority") or 0


def find_shortages(plan: RolloutPlan, objects: StoredObjects, new: Object) -> dict[str, str]:
    """Return what is missing for a new pod, by node; nodes that get none are left out."""
    wanted, used = requests_of(new), objects.used
    if used is None:
        return {}
    waiting = {NodeAction.NOT_ELIGIBLE, NodeAction.HELD, NodeAction.CURRENT, NodeAction.REMOVE}
    reached = {each.node for each in plan.nodes if each.action not in waiting}
    beside: Mapping[str, int] = {}  # the old pod, where it stays until the new one is available
    if plan.forecast.surging and objects.ds is not None:
        beside = {**requests_of(_decode(objects.ds)), PODS: 1}
    found = {}
    for body in objects.nodes or ():
        node = _decode(body)
        name = node["metadata"]["name"]
        allocatable = parse_amounts((node.get("status") or {}).get("allocatable") or {})
        if name not in reached or not allocatable:
            continue
        taken = add_amounts((used.get(name, {}), beside))
        missing = missing_room(allocatable, taken, {**wanted, PODS: 1})
        if missing:
            found[name] = ", ".join(map(str, missing))
    return found


def _decode(body: bytes) -> Object:
    return msgspec.json.decode(body, type=Object)
