"""L4: no livelock: the request rate of a controller is bounded by the size of the cluster."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from everynode.sim.checks.events import EventRate
from everynode.sim.history.record import RecordedRequest, WorldRecord

_WINDOW: Final = 10.0
_ALWAYS_ALLOWED: Final = 150  # requests in that time that are always allowed
_PER_NODE: Final = 25


class RequestRate:
    """Counts the writes of every process over a sliding window."""

    id: ClassVar[str] = "L4"
    title: ClassVar[str] = "no livelock: requests are bounded by what happens"

    def __init__(self, record: WorldRecord) -> None:
        self._record = record
        # By process: requests with their response status.
        self._recent: dict[str, deque[tuple[RecordedRequest, int]]] = {}
        self._reported: set[str] = set()
        self._events = EventRate()
        self._led_since: dict[int, float] = {}  # by the version at which leadership was acquired

    def cause(self, cause: RecordedRequest, status: int) -> Iterable[str]:
        """Check one more request."""
        if not cause.actor.startswith("controller") or cause.actor in self._reported:
            return ()
        return self._check(cause, status)

    def _check(self, cause: RecordedRequest, status: int) -> Iterator[str]:
        actor = cause.actor
        if cause.request.method != "GET":
            yield from self._events.cause(cause)
            yield from self._check_lead(cause)
        recent = self._recent.get(actor)
        if recent is None:
            recent = self._recent[actor] = deque()
        recent.append((cause, status))
        while recent[0][0].time < cause.time - _WINDOW:
            recent.popleft()
        count = len(recent)
        if count > _ALWAYS_ALLOWED and count > _ALWAYS_ALLOWED + _PER_NODE * len(
            self._record.cluster.nodes
        ):
            self._reported.add(actor)
            often = ", ".join(f"{times} x {text}" for text, times in _most_common(recent))
            yield f"{actor} made {count} requests in {_WINDOW:.0f} s: {often}"

    def _check_lead(self, cause: RecordedRequest) -> Iterable[str]:
        """No process sends a write while another one is leader, even if the server refuses it."""
        leader, request = self._record.leader, cause.request
        if leader is None:
            return
        since = self._led_since.setdefault(self._record.leader_since[leader], cause.time)
        if "/leases" not in request.path and cause.actor != leader and cause.sent_at > since:
            yield f"S13: {cause.actor} asked for {request.method} {request.path}, {leader} led"


def _most_common(recent: Iterable[tuple[RecordedRequest, int]]) -> list[tuple[str, int]]:
    requests = ((cause.request, status) for cause, status in recent)
    return Counter(f"{r.method} {r.path} -> {status}" for r, status in requests).most_common(2)
