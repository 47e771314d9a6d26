"""Metadata of installed objects: names, labels, field manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import everynode

Object = dict[str, Any]

FIELD_MANAGER: Final = "everynode-install"  # of server-side apply
# The selector of the Deployment: immutable, so it never changes between versions.
POD_LABELS: Final = {"app.kubernetes.io/name": "everynode"}
LABELS: Final = {
    **POD_LABELS,
    "app.kubernetes.io/part-of": "everynode",
    "app.kubernetes.io/version": everynode.__version__,
}


def new_object(api_version: str, kind: str, name: str, *, namespace: str = "") -> Object:
    """Build an object with its type, name, namespace (if any) and the labels of Everynode."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return with_labels({"apiVersion": api_version, "kind": kind, "metadata": metadata}, LABELS)


def with_labels(given: Object, labels: Mapping[str, str]) -> Object:
    """Return the object with these labels added."""
    metadata = given["metadata"]
    both = {**metadata.get("labels", {}), **labels}
    return {**given, "metadata": {**metadata, "labels": both}}


def is_ours(live: Object) -> bool:
    """Whether a live object was installed by Everynode."""
    labels = live["metadata"].get("labels", {})
    return bool(labels.get("app.kubernetes.io/part-of") == "everynode")
