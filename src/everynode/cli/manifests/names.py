"""What every installed object is called and labelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import everynode

Object = dict[str, Any]

MANAGER: Final = "everynode-install"  # of the fields we apply
# Which pods are the controller's: never changes, because selectors cannot.
SELECTOR: Final = {"app.kubernetes.io/name": "everynode"}
LABELS: Final = {
    **SELECTOR,
    "app.kubernetes.io/part-of": "everynode",
    "app.kubernetes.io/version": everynode.__version__,
}


def named(api_version: str, kind: str, name: str, *, namespace: str = "") -> Object:
    """Begin an object with its name, its namespace if it has one, and our labels."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return labelled({"apiVersion": api_version, "kind": kind, "metadata": metadata}, LABELS)


def labelled(given: Object, labels: Mapping[str, str]) -> Object:
    """Return the object with more labels."""
    metadata = given["metadata"]
    both = {**metadata.get("labels", {}), **labels}
    return {**given, "metadata": {**metadata, "labels": both}}


def is_ours(live: Object) -> bool:
    """Whether an object on a cluster was made by us."""
    labels = live["metadata"].get("labels", {})
    return bool(labels.get("app.kubernetes.io/part-of") == "everynode")
