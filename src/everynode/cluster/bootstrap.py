"""What a cluster of ours has from its first moment."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.crd import crd
from everynode.cluster.workloads import SYSTEM_CLASSES

Object = dict[str, Any]

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


_CRITICAL: Final = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to "
        "another node if necessary."
    ),
}


def first_objects() -> list[tuple[str, Object]]:
    """Path and object of everything that is created at the start, in order."""
    namespaces = [("/api/v1/namespaces", {"metadata": {"name": name}}) for name in NAMESPACES]
    classes = [
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": name}, "value": value, "description": _CRITICAL[name]},
        )
        for name, value in SYSTEM_CLASSES.items()
    ]
    definitions = [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())]
    return [*namespaces, *classes, *definitions]
