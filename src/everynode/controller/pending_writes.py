"""Pending writes: our own writes to pods that the pod cache does not show yet.

A node with a pending write counts at the worse of before and after, and gets no further write
until the cache shows the write, or a GET of the pod shows whether it was committed.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from everynode.api.objects import Pod
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.kube.watch.cache import parse_resource_version

VERIFY_UNKNOWN_AFTER = 5.0  # seconds until the pod of a write of unknown outcome is read
# The cache normally shows a committed write within milliseconds, and a watch that is behind catches
# up; reading pods meanwhile would only slow it down. This is for a watch that never catches up.
VERIFY_COMMITTED_AFTER = 20.0


class WriteStage(enum.Enum):
    """How far a write has come."""

    SENT = "sent"  # queued or sent, no response yet
    ANSWERED = "answered"  # committed; the cache may not show it yet
    UNKNOWN = "unknown"  # no response: it may or may not have been committed
    GONE = "gone"  # its pod no longer exists; the cache may still show the pod


@dataclass(slots=True)
class PendingWrite:
    """One own write on one node."""

    action: PodAction
    since: float  # when the stage was reached
    stage: WriteStage = WriteStage.SENT
    uid: str = ""  # of the pod written, once known
    version: int = 0  # resourceVersion in the response, 0 before it

    def seen(self, pods: Sequence[Pod], cache_version: int) -> bool:
        """Whether the cache shows this write; `pods` are those of the node in the cache.

        `cache_version` is the resourceVersion up to which the cache has seen all changes.
        """
        if isinstance(self.action, DeletePod):
            pod = _find(pods, self.action.uid)
            return pod is None or pod.terminating
        if self.stage is WriteStage.GONE and isinstance(self.action, PatchPod):
            return _find(pods, self.action.uid) is None
        if self.stage is not WriteStage.ANSWERED:
            return False
        pod = _find(pods, self.uid)
        if pod is not None and isinstance(self.action, CreatePod):
            return True
        if pod is not None and version_of(pod) >= self.version:
            return True
        return cache_version >= self.version

    def verify_at(self) -> float:
        """When to read the pod if the cache still does not show the write."""
        committed = self.stage is WriteStage.ANSWERED
        return self.since + (VERIFY_COMMITTED_AFTER if committed else VERIFY_UNKNOWN_AFTER)


def _find(pods: Sequence[Pod], uid: str) -> Pod | None:
    for pod in pods:
        if pod.uid == uid:
            return pod
    return None


def version_of(pod: Pod) -> int:
    """The pod's resourceVersion as a number, 0 if it is not a number."""
    return parse_resource_version(pod.metadata.resource_version)
