"""How many nodes may get a second pod now (R5): maxSurge as a promise.

A node has two pods as long as both are there, also while one of them terminates, so that the place
is free again only when the old pod is really gone.
"""

from __future__ import annotations


def surge_room(limit: int, doubled: int, lost: int, *, outage: bool) -> int:
    """How many more nodes may have two pods.

    `lost` are nodes with two pods whose kubelet is silent; like a silent node in the budget they
    do not hold up the others unless there is an outage.
    """
    return max(0, limit - doubled - (lost if outage else 0))
