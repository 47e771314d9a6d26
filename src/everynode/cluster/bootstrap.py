"""What a cluster of ours has from its first moment."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


def first_objects() -> list[tuple[str, Object]]:
    """Path and object of everything that is created at the start, in order."""
    return [("/api/v1/namespaces", {"metadata": {"name": name}}) for name in NAMESPACES]
