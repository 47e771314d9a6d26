"""L4: no livelock; a controller never asks faster than there can be reasons to."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
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
        self._times: dict[str, deque[float]] = {}
        self._what: dict[str, Counter[str]] = {}
        self._told: set[str] = set()
        self._events = EventPace()
        self._led_since: dict[str, float] = {}

    def asked(self, asked: Asked, status: int) -> Iterable[str]:
        """Look at one more request."""
        actor, request = asked.actor, asked.request
        if not actor.startswith("controller") or actor in self._told:
            return
        yield from self._events.asked(asked)
        yield from self._judge_lead(asked)
        times = self._times.setdefault(actor, deque())
        what = self._what.setdefault(actor, Counter())
        times.append(asked.time)
        what[f"{request.method} {request.path} -> {status}"] += 1
        while times[0] < asked.time - _SECONDS:
            times.popleft()
        most = _AT_LEAST + _PER_NODE * len(self._record.scene.nodes)
        if len(times) > most:
            self._told.add(actor)
            often = ", ".join(f"{count} x {text}" for text, count in what.most_common(2))
            yield f"{actor} made {len(times)} requests in {_SECONDS:.0f} s: {often}"

    def _judge_lead(self, asked: Asked) -> Iterable[str]:
        """Nobody begins a write while another leads, whatever the server makes of it."""
        terms, request = self._record.terms, asked.request
        if not terms or request.method == "GET":
            return
        leader = max(terms, key=lambda actor: terms[actor])
        since = self._led_since.setdefault(f"{leader}@{terms[leader]}", asked.time)
        if "/leases" not in request.path and asked.actor != leader and asked.sent_at > since:
            yield f"S13: {asked.actor} asked for {request.method} {request.path}, {leader} led"
