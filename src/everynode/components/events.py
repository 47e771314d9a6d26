"""Events that kubelets, scheduler and controllers write, at a bounded rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.components.request_queue import RequestQueue, ignore_result
from everynode.kube import verbs
from everynode.kube.resources import EVENTS

Object = dict[str, Any]

# A token bucket: when thousands of pods start together, five events for each would cost more than
# the pods themselves.
BURST: Final = 1000.0
PER_SECOND: Final = 100.0


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    version: str = ""
    path: str = ""
    api_version: str = "v1"


class EventRecorder:
    """Writes events; drops those that exceed the rate."""

    def __init__(self, clock: Clock, requests: RequestQueue, *, enabled: bool = True) -> None:
        self._clock = clock
        self._requests = requests
        self.enabled = enabled  # callers may skip building an event that would be dropped
        self._tokens = BURST
        self._filled_at = clock.monotonic()
        self._count = 0

    def record(
        self,
        involved: InvolvedObject,
        reason: str,
        message: str,
        *,
        component: str,
        host: str = "",
        warning: bool = False,
    ) -> None:
        """Write an event, unless the rate is exceeded."""
        if not self.enabled or not self._take_token():
            return
        now = self._clock.now()
        self._count += 1
        namespace = involved.namespace or "default"
        source = {"component": component, "host": host} if host else {"component": component}
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{involved.name}.{int(now * 1e6):x}{self._count & 0xFFF:03x}",
                "namespace": namespace,
            },
            "involvedObject": _reference(involved),
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
        self._requests.send(verbs.create(EVENTS, event, namespace=namespace), ignore_result)

    def _take_token(self) -> bool:
        now = self._clock.monotonic()
        gained = (now - self._filled_at) * PER_SECOND
        self._tokens = min(BURST, self._tokens + gained)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def _reference(involved: InvolvedObject) -> Object:
    written = {
        "kind": involved.kind,
        "namespace": involved.namespace,
        "name": involved.name,
        "uid": involved.uid,
        "apiVersion": involved.api_version,
        "resourceVersion": involved.version,
        "fieldPath": involved.path,
    }
    return {key: value for key, value in written.items() if value}
