"""Pending writes: our own writes to pods that the pod cache does not show yet.

A node with a pending write counts at the worse of before and after, and gets no further write
until the cache shows the write, or a GET of the pod shows whether it was committed.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everynode.api.objects import Pod
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.kube.watch.cache import parse_resource_version

VERIFY_UNKNOWN_AFTER = 5.0  # seconds until the pod of a write of unknown outcome is read
# The cache normally shows a committed write within milliseconds, and a watch that is behind catches
# up; reading pods meanwhile would only slow it down. This is for a watch that never catches up.
VERIFY_COMMITTED_AFTER = 20.0
_MAX_VERIFIED = 10  # pods that are read together because a write is not seen
_VERIFY_PAUSE = 0.5
# Seconds a write may wait to be sent; after that it is decided again, by what is observed then.
_MAX_QUEUED_SECONDS = 1.0


class WriteStage(enum.Enum):
    """How far a write has come."""

    QUEUED = "queued"  # not sent yet: it can still be taken back
    SENT = "sent"  # no response yet
    ANSWERED = "answered"  # committed; the cache may not show it yet
    UNKNOWN = "unknown"  # no response: it may or may not have been committed
    GONE = "gone"  # its pod no longer exists; the cache may still show the pod


@dataclass(slots=True)
class PendingWrite:
    """One own write on one node."""

    action: PodAction
    since: float  # when the stage was reached
    stage: WriteStage = WriteStage.QUEUED
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

    def is_outdated(self, now: float) -> bool:
        """Whether it has waited too long to be sent as it was decided."""
        return now - self.since > _MAX_QUEUED_SECONDS

    def verify_at(self) -> float:
        """When to read the pod if the cache still does not show the write."""
        committed = self.stage is WriteStage.ANSWERED
        return self.since + (VERIFY_COMMITTED_AFTER if committed else VERIFY_UNKNOWN_AFTER)


def take_overdue(
    writes: Mapping[str, PendingWrite], now: float
) -> tuple[list[tuple[str, PendingWrite]], float | None]:
    """Return writes that the cache should show by now, by node name; their pods are read.

    At most _MAX_VERIFIED, and each again only after another full wait. Also when to look again.
    """
    unanswered = (WriteStage.QUEUED, WriteStage.SENT)
    waiting = [
        (node, each) for node, each in sorted(writes.items()) if each.stage not in unanswered
    ]
    late = [(node, each) for node, each in waiting if each.verify_at() <= now][:_MAX_VERIFIED]
    for _, write in late:
        write.since = now
    times = (max(write.verify_at(), now + _VERIFY_PAUSE) for _, write in waiting)
    return late, min(times, default=None)


def _find(pods: Sequence[Pod], uid: str) -> Pod | None:
    for pod in pods:
        if pod.uid == uid:
            return pod
    return None


def version_of(pod: Pod) -> int:
    """The pod's resourceVersion as a number, 0 if it is not a number."""
    return parse_resource_version(pod.metadata.resource_version)
