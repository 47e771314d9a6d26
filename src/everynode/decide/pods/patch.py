"""Strategic merge patches of a pod, with uid and resourceVersion as preconditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everynode.api.objects import Pod
from everynode.decide.actions import Cause, Notice, PatchPod


def patch_pod(
    pod: Pod,
    cause: Cause,
    *,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    subresource: str = "",
    notice: Notice | None = None,
    require_version: bool = True,
) -> PatchPod:
    """Return a strategic merge patch that fails if the pod was replaced or has changed.

    Without `require_version` it fails only if the pod was replaced. That is for patches which are
    right whatever else has changed.
    """
    guarded = {"uid": pod.uid}
    if require_version:
        guarded["resourceVersion"] = pod.metadata.resource_version
    body: dict[str, Any] = {"metadata": {**(metadata or {}), **guarded}}
    if spec is not None:
        body["spec"] = dict(spec)
    if status is not None:
        body["status"] = dict(status)
    return PatchPod(
        node=pod.node,
        name=pod.name,
        uid=pod.uid,
        body=body,
        cause=cause,
        subresource=subresource,
        notice=notice,
    )
