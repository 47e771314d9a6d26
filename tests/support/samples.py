"""Sample objects for tests: templates, DaemonSets, revisions and pods as an API server has them."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    Flavour,
    LabelSelector,
    RollingUpdateType,
    UpdateStrategy,
)
from everynode.api.objects import ObjectMeta, Pod
from everynode.api.times import format_time
from everynode.decide.revisions.target import Revision

Object = dict[str, Any]

NOW = 1_700_000_000.0


def template(**spec: Any) -> bytes:
    """Return a template with one container, `agent`; `spec` is added to the pod's spec."""
    made = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [container()], **spec},
    }
    return msgspec.json.encode(made)


def template_with(metadata: Object | None = None, **container_fields: Any) -> bytes:
    """Return a template with one container that has these fields."""
    meta = {"labels": {"app": "agent"}, **(metadata or {})}
    return msgspec.json.encode(
        {"metadata": meta, "spec": {"containers": [container(**container_fields)]}}
    )


def container(name: str = "agent", image: str = "registry.example/agent:1", **more: Any) -> Object:
    return {"name": name, "image": image, **more}


def advanced(template: bytes, **more: Any) -> DaemonSet:
    """Return an Advanced DaemonSet that is updated in place if possible."""
    meta = {"generation": 1, "annotations": {}} | more.pop("metadata", {})
    return DaemonSet(
        flavour=Flavour.ADVANCED,
        metadata=ObjectMeta(name="agent", namespace="system", uid="ds-uid", **meta),
        selector=more.pop("selector", LabelSelector({"app": "agent"})),
        template=template,
        strategy=more.pop("strategy", UpdateStrategy(rolling=RollingUpdateType.IN_PLACE)),
        status=more.pop("status", DaemonSetStatus()),
        **more,
    )


def native(template: bytes, *, template_generation: int = 1, **more: Any) -> DaemonSet:
    """Return a native DaemonSet as the API server returns it."""
    meta = more.pop("metadata", {})
    noted = {keys.TEMPLATE_GENERATION: str(template_generation)} | meta.pop("annotations", {})
    return DaemonSet(
        flavour=Flavour.NATIVE,
        metadata=ObjectMeta(
            name="agent", namespace="system", uid="ds-uid", annotations=noted, **meta
        ),
        selector=LabelSelector({"app": "agent"}),
        template=template,
        **more,
    )


def revision(template: bytes, hash: str = "aaa", **more: Any) -> Revision:
    """Return a stored revision."""
    given: Object = {"name": f"agent-{hash}", "number": 1, "uid": f"uid-{hash}"} | more
    return Revision(
        hash=hash, template=template, resource_version=more.pop("resource_version", "7"), **given
    )


def condition(
    kind: str, status: str = "True", since: float | None = NOW - 100, **more: str
) -> Object:
    made: Object = {"type": kind, "status": status, **more}
    if since is not None:
        made["lastTransitionTime"] = format_time(since)
    return made


def pod_json(
    hash: str = "aaa",
    *,
    gates: tuple[str, ...] = (keys.INPLACE_UPDATE_READY, keys.KRUISE_POD_READY),
    conditions: list[Object] | None = None,
    containers: list[Object] | None = None,
    statuses: list[Object] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    metadata: Object | None = None,
    **status: Any,
) -> Object:
    """Return the JSON of a running, Ready pod of the Advanced DaemonSet on node n1."""
    running = containers if containers is not None else [container()]
    if conditions is None:
        kinds = (keys.READY, keys.CONTAINERS_READY, *gates)
        conditions = [condition(kind) for kind in kinds]
    if statuses is None:
        statuses = [container_status(each["name"], each["image"]) for each in running]
    owner = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "ds-uid",
        "controller": True,
    }
    return {
        "metadata": {
            "name": "agent-1",
            "namespace": "system",
            "uid": "pod-uid",
            "resourceVersion": "42",
            "labels": {"app": "agent", keys.REVISION_HASH: hash, **(labels or {})},
            "annotations": annotations or {},
            "ownerReferences": [owner],
            "creationTimestamp": format_time(NOW - 1000),
            **(metadata or {}),
        },
        "spec": {
            "nodeName": "n1",
            "readinessGates": [{"conditionType": kind} for kind in gates],
            "containers": running,
        },
        "status": {
            "phase": "Running",
            "startTime": format_time(NOW - 900),
            "conditions": conditions,
            "containerStatuses": statuses,
            **status,
        },
    }


def container_status(name: str, image: str, **more: Any) -> Object:
    given = {
        "image": image,
        "imageID": f"sha256:{image}",
        "containerID": f"containerd://{name}-1",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": format_time(NOW - 800)}},
    }
    return {"name": name, **given, **more}


def pod(*args: Any, **more: Any) -> Pod:
    """Return the pod of `pod_json` as the cache holds it."""
    return read_pod(pod_json(*args, **more))


def read_pod(made: Object) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(made), type=Pod)
