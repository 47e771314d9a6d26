"""Our own writes on nodes: under way, answered, of unknown outcome, seen.

A node with a write that the cache does not show yet is counted at the worse of before and after
(law 5), and is left alone until the write is seen or settled by a live look.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from everynode.api.objects import Pod
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.view import OwnWrite, Pending

SETTLE_AFTER = 5.0  # a write of unknown outcome is looked for live
# An answered write normally shows in the cache within milliseconds. A watch that is behind will
# catch up, the later the more it is asked beside it; only one that never does makes us look live.
SHOWN_AFTER = 20.0


class Stage(enum.Enum):
    """How far a write has come."""

    SENT = "sent"  # queued or on its way
    ANSWERED = "answered"  # committed, the cache may not show it yet
    UNKNOWN = "unknown"  # no answer: it may or may not have been committed
    GONE = "gone"  # the pod it was for is no more, the cache may show it still


@dataclass(slots=True)
class Write:
    """One own write on one node."""

    action: PodAction
    since: float
    stage: Stage = Stage.SENT
    uid: str = ""  # of the pod written, once known
    version: int = 0  # resourceVersion of the answer, 0 while there is none

    def view(self) -> OwnWrite:
        """The write as the decision sees it."""
        if isinstance(self.action, CreatePod):
            return OwnWrite(Pending.CREATE, revision=self.action.revision)
        kind = Pending.DELETE if isinstance(self.action, DeletePod) else Pending.PATCH
        return OwnWrite(kind, uid=self.action.uid)

    def seen(self, pods: Sequence[Pod], cache_version: int) -> bool:
        """Whether the cache, which has come as far as `cache_version`, shows this write.

        `pods` are those of the node.
        """
        if isinstance(self.action, DeletePod):
            pod = _find(pods, self.action.uid)
            return pod is None or pod.terminating
        if self.stage is Stage.GONE and isinstance(self.action, PatchPod):
            return _find(pods, self.action.uid) is None
        if self.stage is not Stage.ANSWERED:
            return False
        pod = _find(pods, self.uid)
        if pod is not None and isinstance(self.action, CreatePod):
            return True
        if pod is not None and version_of(pod) >= self.version:
            return True
        return cache_version >= self.version

    def settle_at(self) -> float:
        """When to look live if the cache still does not show the write."""
        return self.since + (SHOWN_AFTER if self.stage is Stage.ANSWERED else SETTLE_AFTER)


def _find(pods: Sequence[Pod], uid: str) -> Pod | None:
    for pod in pods:
        if pod.uid == uid:
            return pod
    return None


def version_of(pod: Pod) -> int:
    """The pod's resourceVersion as a number; API servers promise that they are comparable."""
    return parse_version(pod.metadata.resource_version)


def parse_version(text: str) -> int:
    """A resourceVersion as a number, 0 when it is not one."""
    return int(text) if text.isdigit() else 0
