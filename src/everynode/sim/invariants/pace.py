"""L4: no livelock; a controller never asks faster than there can be reasons to."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from everynode.sim.invariants.events import EventPace
from everynode.sim.record import Asked, Record

_SECONDS: Final = 10.0
_AT_LEAST: Final = 150  # requests in that time that any world may need
_PER_NODE: Final = 25


class Pace:
    """Counts the writes of every process over a sliding window."""

    id: ClassVar[str] = "L4"
    title: ClassVar[str] = "no livelock: requests are bounded by what happens"

    def __init__(self, record: Record) -> None:
        self._record = record
        self._recent: dict[str, deque[tuple[Asked, int]]] = {}  # by process; with its status
        self._told: set[str] = set()
        self._events = EventPace()
        self._led_since: dict[int, float] = {}  # by the version at which the lead was taken

    def asked(self, asked: Asked, status: int) -> Iterable[str]:
        """Look at one more request."""
        if not asked.actor.startswith("controller") or asked.actor in self._told:
            return ()
        return self._judge(asked, status)

    def _judge(self, asked: Asked, status: int) -> Iterator[str]:
        actor = asked.actor
        if asked.request.method != "GET":
            yield from self._events.asked(asked)
            yield from self._judge_lead(asked)
        recent = self._recent.get(actor)
        if recent is None:
            recent = self._recent[actor] = deque()
        recent.append((asked, status))
        while recent[0][0].time < asked.time - _SECONDS:
            recent.popleft()
        count = len(recent)
        if count > _AT_LEAST and count > _AT_LEAST + _PER_NODE * len(self._record.scene.nodes):
            self._told.add(actor)
            often = ", ".join(f"{times} x {text}" for text, times in _most_common(recent))
            yield f"{actor} made {count} requests in {_SECONDS:.0f} s: {often}"

    def _judge_lead(self, asked: Asked) -> Iterable[str]:
        """Nobody begins a write while another leads, whatever the server makes of it."""
        leader, request = self._record.leader, asked.request
        if leader is None:
            return
        since = self._led_since.setdefault(self._record.terms[leader], asked.time)
        if "/leases" not in request.path and asked.actor != leader and asked.sent_at > since:
            yield f"S13: {asked.actor} asked for {request.method} {request.path}, {leader} led"


def _most_common(recent: Iterable[tuple[Asked, int]]) -> list[tuple[str, int]]:
    requests = ((asked.request, status) for asked, status in recent)
    return Counter(f"{r.method} {r.path} -> {status}" for r, status in requests).most_common(2)
