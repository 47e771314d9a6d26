"""In-place progress: what a pod's record and status say of its last update in place."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.objects import ContainerStatus, Pod, Resources
from everynode.api.times import TimeError, parse_time, seconds


def gate_closed(pod: Pod) -> bool:
    """Whether the pod was made NotReady for an in-place update (its gate is closed)."""
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    return condition is not None and condition.status == "False"


def inplace_state_of(pod: Pod) -> dict[str, Any]:
    """The record of an in-place update on the pod."""
    text = pod.metadata.annotations.inplace_state
    try:
        found = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def is_in_place_done(pod: Pod) -> bool:
    """Whether every container runs the pod's spec after an in-place update."""
    state = inplace_state_of(pod)
    if not state or state.get("revision") != pod.hash:
        return not state
    for name, last in (state.get("lastContainerStatuses") or {}).items():
        image = next((each.image for each in pod.spec.containers if each.name == name), "")
        status = next((each for each in pod.status.container_statuses if each.name == name), None)
        if image and (status is None or not _runs(status, image, last)):
            return False
    return not state.get("nextContainerResources") or _has_resources(pod)


def _runs(status: ContainerStatus, image: str, last: dict[str, str]) -> bool:
    """Whether the container runs its image and no other that it had before the update."""
    named, superseded = status.image == image, last.get("image", "")
    if last.get("containerID") == status.container_id:
        return named and bool(superseded)
    new = status.image_id not in ("", last.get("imageID"))
    return named or (new and status.image != superseded)


def _has_resources(pod: Pod) -> bool:
    """Whether every container has the resources of the pod's spec."""
    given = {each.name: each.resources for each in pod.status.container_statuses}
    cause = [(each.resources, given.get(each.name)) for each in pod.spec.containers]
    return all(has is not None and amounts(has) == amounts(want) for want, has in cause)


def revision_since(pod: Pod) -> float:
    """When the pod got its current revision: by creation or by an in-place update."""
    state = inplace_state_of(pod)
    changed = state.get("updateTimestamp") if state.get("revision") == pod.hash else None
    begun = _time(changed) if isinstance(changed, str) else 0.0
    return max(seconds(pod.metadata.creation_timestamp) or 0.0, begun)


def _time(text: str) -> float:
    try:
        return parse_time(text)
    except TimeError:
        return 0.0


def amounts(resources: Resources) -> tuple[tuple[str, str, str], ...]:
    """Requests and limits in comparable form; a missing request equals its limit."""
    cause = {**resources.limits, **resources.requests}
    both = (("limits", resources.limits), ("requests", cause))
    return tuple((kind, name, str(each[name])) for kind, each in both for name in sorted(each))
