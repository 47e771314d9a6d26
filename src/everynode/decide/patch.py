"""How a change of one pod is written: for the pod that was looked at, in the state it was in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everynode.api.affinity import pinned_node
from everynode.api.objects import Pod
from everynode.decide.actions import Because, Notice, PatchPod


def node_of(pod: Pod) -> str:
    """The node a pod runs on or is meant for, empty if neither is known."""
    return pod.spec.node_name or pinned_node(pod.spec.affinity)


def patch_pod(
    pod: Pod,
    because: Because,
    *,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    subresource: str = "",
    notice: Notice | None = None,
    unchanged: bool = True,
) -> PatchPod:
    """A strategic merge patch that fails if the pod is another one or has changed since.

    Without `unchanged` it only fails for another pod: for what is right whatever else happened.
    """
    guarded = {"uid": pod.uid}
    if unchanged:
        guarded["resourceVersion"] = pod.metadata.resource_version
    body: dict[str, Any] = {"metadata": {**(metadata or {}), **guarded}}
    if spec is not None:
        body["spec"] = dict(spec)
    if status is not None:
        body["status"] = dict(status)
    return PatchPod(
        node=node_of(pod),
        name=pod.name,
        uid=pod.uid,
        body=body,
        because=because,
        subresource=subresource,
        notice=notice,
    )
