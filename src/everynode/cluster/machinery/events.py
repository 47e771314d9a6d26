"""Events as the parts of a cluster write them, at a bounded rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.cluster.machinery.writes import Writes, ignore
from everynode.kube import verbs
from everynode.kube.resources import EVENTS

Object = dict[str, Any]

# So many at once, and so many a second: when thousands of pods start together, not each of them
# needs five events to tell its story.
BURST: Final = 1000.0
PER_SECOND: Final = 100.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    version: str = ""
    path: str = ""
    api_version: str = "v1"


class Recorder:
    """Writes events as long as there are not too many."""

    def __init__(self, clock: Clock, writes: Writes, *, enabled: bool = True) -> None:
        self._clock = clock
        self._writes = writes
        self.enabled = enabled  # whether it is worth while to say anything
        self._tokens = BURST
        self._filled_at = clock.monotonic()
        self._count = 0

    def record(
        self,
        subject: Subject,
        reason: str,
        message: str,
        *,
        component: str,
        host: str = "",
        warning: bool = False,
    ) -> None:
        """Write an event, unless there were too many lately."""
        if not self.enabled or not self._take():
            return
        now = self._clock.now()
        self._count += 1
        namespace = subject.namespace or "default"
        source = {"component": component, "host": host} if host else {"component": component}
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{subject.name}.{int(now * 1e6):x}{self._count & 0xFFF:03x}",
                "namespace": namespace,
            },
            "involvedObject": _reference(subject),
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:1024],
            "source": source,
            "firstTimestamp": format_time(now),
            "lastTimestamp": format_time(now),
            "count": 1,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        self._writes.send(verbs.create(EVENTS, event, namespace=namespace), ignore)

    def _take(self) -> bool:
        now = self._clock.monotonic()
        gained = (now - self._filled_at) * PER_SECOND
        self._tokens = min(BURST, self._tokens + gained)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def _reference(subject: Subject) -> Object:
    written = {
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "apiVersion": subject.api_version,
        "resourceVersion": subject.version,
        "fieldPath": subject.path,
    }
    return {key: value for key, value in written.items() if value}
