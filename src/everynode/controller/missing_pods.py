"""MissingPods: since when nodes lack a pod while another manager writes a DaemonSet's status.

A controller that is at work creates a missing pod within seconds. What is missing for longer is
left to us, also while the status is contested (docs/rules.md#r9): one stray write of a status must
not leave nodes without their pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LEFT_TO_OTHERS: Final = 10.0  # seconds that another controller has for creating a missing pod


class MissingPods:
    """Since when nodes lack a pod, for every DaemonSet with a status conflict."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, float]] = {}  # by DaemonSet and node

    def due(
        self, key: str, lacking: Iterable[str], now: float
    ) -> tuple[frozenset[str], float | None]:
        """Return the nodes that lacked a pod for long enough, and when the next one will have.

        A node counts from when it is first given here. A time after `now` was noted before the wall
        clock was set back, and counts from now.
        """
        known = self._since.get(key, {})
        since = {node: min(known.get(node, now), now) for node in lacking}
        self._since[key] = since
        waiting = [at + LEFT_TO_OTHERS for at in since.values() if now < at + LEFT_TO_OTHERS]
        due = frozenset(node for node, at in since.items() if now >= at + LEFT_TO_OTHERS)
        return due, min(waiting, default=None)

    def forget(self, key: str) -> bool:
        """The conflict is over, or the DaemonSet is gone; return whether there was one."""
        return self._since.pop(key, None) is not None
