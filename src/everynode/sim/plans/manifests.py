"""Manifests of DaemonSets for simulated clusters."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def daemonset(
    name: str = "agent",
    *,
    image: str = "agent:v1",
    rolling: Object | None = None,
    min_ready: int = 0,
    api_version: str = "apps.kruise.io/v1beta1",
    template: Object | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A DaemonSet; `template` is merged into the pod's spec, `spec` into the DaemonSet's."""
    labels = {"app": name}
    metadata: Object = {"labels": {**labels, **spec.pop("labels", {})}}
    if annotations:
        metadata["annotations"] = annotations
    containers = [{"name": "agent", "image": image}]
    made: Object = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": {"containers": containers, **(template or {})}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling or {}},
        **spec,
    }
    if min_ready:
        made["minReadySeconds"] = min_ready
    return {
        "apiVersion": api_version,
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": made,
    }
