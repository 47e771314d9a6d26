"""Surge (R5): how many nodes may get a second pod now without exceeding maxSurge.

A node counts as having two pods until one of them no longer exists. A terminating pod counts.
"""

from __future__ import annotations


def surge_room(limit: int, two_pods: int, lost: int, *, outage: bool) -> int:
    """Return how many more nodes may have two pods.

    `lost` counts the nodes with two pods whose kubelet does not report. As in the budget, they do
    not block other nodes unless there is an outage.
    """
    return max(0, limit - two_pods - (lost if outage else 0))
