"""Bootstrap objects: namespaces, priority classes and the CRD that a new cluster starts with."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.crd import crd
from everynode.api.keys import SYSTEM_PRIORITIES

Object = dict[str, Any]

INITIAL_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


_PRIORITY_CLASS_DESCRIPTIONS: Final = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to "
        "another node if necessary."
    ),
}


def bootstrap_objects() -> list[tuple[str, Object]]:
    """Return collection path and object of everything created in an empty store, in order."""
    namespaces = [
        ("/api/v1/namespaces", {"metadata": {"name": name}}) for name in INITIAL_NAMESPACES
    ]
    classes = [
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "metadata": {"name": name},
                "value": value,
                "description": _PRIORITY_CLASS_DESCRIPTIONS[name],
            },
        )
        for name, value in SYSTEM_PRIORITIES.items()
    ]
    definitions = [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())]
    return [*namespaces, *classes, *definitions]
