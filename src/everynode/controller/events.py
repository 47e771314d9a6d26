"""Kubernetes Events on what we serve, so combined that a large rollout writes a few of them.

The first ten events of a kind on an object are written one by one, as people know them. Further
ones within ten minutes are combined into a single event whose count goes up, and an object's
events are written ever more slowly the more there are. The last state is always written in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from everynode.api.keys import FIELD_MANAGER
from everynode.api.objects import ObjectReference
from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.controller.log import Log
from everynode.decide.actions import Notice
from everynode.kube import verbs
from everynode.kube.client import Client, MayNotWrite
from everynode.kube.errors import (
    AlreadyExists,
    KubeError,
    NotFound,
    TooManyRequests,
    Unavailable,
    UnknownOutcome,
)
from everynode.kube.requests import STRATEGIC_PATCH, Request
from everynode.kube.resources import EVENTS

COMPONENT: Final = "daemonset-controller"  # the peers' name: tools look for it
SEPARATE: Final = 10  # events of one kind that are written one by one
WINDOW: Final = 600.0  # seconds after which similar events are told apart again
BURST: Final = 25  # events of one type that an object may get at once
RESERVE: Final = 2  # of those, kept for the last counts of a rollout
REFILL: Final = 60.0  # seconds until it may get one more
WAITING: Final = 1000  # events that may wait to be written; beyond, the oldest are dropped
_REMEMBERED: Final = 1024
_LONGEST: Final = 1024  # characters of a message
_COMBINED: Final = "(combined from similar events): "
_TRY_AGAIN: Final = (Unavailable, TooManyRequests, UnknownOutcome)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_MOMENT: Final = 0.01
log: Final = Log("events")

Key = tuple[str, str, str, str]  # uid, type, reason, message; no message where combined


@dataclass(slots=True)
class _Entry:
    """One event, written or to be written."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    first: float
    last: float
    name: str
    count: int = 1
    written: bool = False


@dataclass(slots=True)
class _Similar:
    """The events of one type and reason on one object."""

    last: float = float("-inf")
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Bucket:
    """How many events of one type an object may still get."""

    tokens: float = BURST
    filled_at: float = 0.0

    def fill(self, now: float) -> None:
        self.tokens = min(BURST, self.tokens + (now - self.filled_at) / REFILL)
        self.filled_at = now

    def full_at(self, tokens: int) -> float:
        """When there will be so many whole tokens."""
        return self.filled_at + max(0.0, tokens - self.tokens) * REFILL


class Recorder:
    """Takes events at once and writes them when there is time."""

    def __init__(self, client: Client, clock: Clock, *, instance: str = "") -> None:
        self.written = 0
        self.dropped = 0
        self._client = client
        self._clock = clock
        self._instance = instance
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._similar: OrderedDict[tuple[str, str, str], _Similar] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._waiting: OrderedDict[Key, _Entry] = OrderedDict()
        self._hurried: dict[Key, None] = {}  # of those, the last of a rollout
        self._wake = asyncio.Event()
        self._refusal = ""
        self._stamp = 0  # of the last name given

    def record(self, about: ObjectReference, notice: Notice) -> None:
        """Note that something happened to an object; returns at once."""
        message = notice.message[:_LONGEST]
        key = self._key(about.uid, notice, message)
        text = message if key[3] else f"{_COMBINED}{message}"[:_LONGEST]
        now = self._clock.now()
        entry = self._entries.get(key)
        if entry is None:
            name = self._new_name(about.name, now)
            entry = _Entry(about, notice.type, notice.reason, text, now, now, name)
            self._entries[key] = entry
            _forget(self._entries)
        else:
            self._entries.move_to_end(key)
            entry.count, entry.last, entry.message = entry.count + 1, now, text
        if key not in self._waiting:
            self._waiting[key] = entry
            self._wake.set()
        if len(self._waiting) > WAITING:
            self._waiting.popitem(last=False)
            self.dropped += 1

    def hurry(self, uid: str) -> None:
        """Write what waits for this object now, from what is kept for that: then comes rest."""
        last = [key for key in self._waiting if key[0] == uid or key in self._hurried]
        self._hurried = dict.fromkeys(last)
        self._wake.set()

    async def run(self) -> None:
        """Write what has been noted, until cancelled."""
        failures = 0
        while True:
            key, pause = self._next()
            if key is None:
                await self._sleep(pause)
                continue
            entry = self._waiting.pop(key)
            try:
                await self._write(entry)
                failures = 0
            except _TRY_AGAIN:
                failures += 1
                self._waiting.setdefault(key, entry)
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures, 10))
                await self._clock.sleep(self._clock.jitter(longest / 2, longest))
            except KubeError as error:
                self._drop(error)

    async def flush(self, seconds: float) -> None:
        """Write what waits, whatever the pace, for so long at most; for a clean end."""
        end = self._clock.monotonic() + seconds
        while self._waiting and self._clock.monotonic() < end:
            _, entry = self._waiting.popitem(last=False)
            try:
                await self._write(entry)
            except KubeError as error:
                self._drop(error)

    # --- Which one ---------------------------------------------------------------------------

    def _key(self, uid: str, notice: Notice, message: str) -> Key:
        kind = (uid, notice.type, notice.reason)
        similar = self._similar.setdefault(kind, _Similar())
        self._similar.move_to_end(kind)
        _forget(self._similar)
        now = self._clock.monotonic()
        if now - similar.last > WINDOW:
            similar.messages.clear()
            self._entries.pop((*kind, ""), None)  # the next ones are combined into a new event
        similar.last = now
        if message in similar.messages or len(similar.messages) < SEPARATE:
            similar.messages.add(message)
            return (*kind, message)
        return (*kind, "")

    def _next(self) -> tuple[Key | None, float | None]:
        """Return the oldest event that may be written now, or how long to wait for one."""
        now = self._clock.monotonic()
        due: list[float] = []
        spent: set[tuple[tuple[str, str], int]] = set()
        for key in self._waiting:
            owner = key[:2]
            # What is combined leaves something for its last count, when the rollout is over.
            needed = 1 if key[3] or key in self._hurried else 1 + RESERVE
            if (owner, needed) in spent:
                continue
            bucket = self._buckets.setdefault(owner, _Bucket(filled_at=now))
            self._buckets.move_to_end(owner)
            bucket.fill(now)
            if bucket.tokens >= needed:
                bucket.tokens -= 1
                self._hurried.pop(key, None)
                _forget(self._buckets)
                return key, None
            spent.add((owner, needed))
            due.append(bucket.full_at(needed))
        # A token that lacks only what rounding took is worth a moment, not a busy loop.
        return None, max(min(due) - now, _MOMENT) if due else None

    async def _sleep(self, pause: float | None) -> None:
        """Wait for something new, or for so long."""
        self._wake.clear()
        if pause is None:
            await self._wake.wait()
            return
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._wake.wait()),
                group.create_task(self._clock.sleep(pause)),
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()

    # --- Writing -----------------------------------------------------------------------------

    async def _write(self, entry: _Entry) -> None:
        namespace = entry.about.namespace or "default"
        if entry.written:
            try:
                await self._client.write(self._patch(entry, namespace), bytes)
                self.written += 1
                return
            except NotFound:  # the server forgets events after an hour
                entry.written = False
                entry.name = self._new_name(entry.about.name, entry.last)
        body = self._body(entry, namespace)
        create = verbs.create(EVENTS, body, namespace=namespace, manager=FIELD_MANAGER)
        # AlreadyExists: an answer was lost, and this is the same event once more.
        with contextlib.suppress(AlreadyExists):
            await self._client.write(create, bytes)
        entry.written = True
        self.written += 1

    def _new_name(self, about: str, now: float) -> str:
        self._stamp = max(self._stamp + 1, int(now * 1e9))
        return f"{about[:200]}.{self._stamp:x}"

    def _patch(self, entry: _Entry, namespace: str) -> Request:
        body = {
            "count": entry.count,
            "message": entry.message,
            "lastTimestamp": format_time(entry.last),
        }
        return verbs.patch(
            EVENTS,
            entry.name,
            body,
            kind=STRATEGIC_PATCH,
            namespace=namespace,
            manager=FIELD_MANAGER,
        )

    def _body(self, entry: _Entry, namespace: str) -> dict[str, Any]:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": entry.name, "namespace": namespace},
            "involvedObject": msgspec.to_builtins(entry.about),
            "type": entry.type,
            "reason": entry.reason,
            "message": entry.message,
            "count": entry.count,
            "firstTimestamp": format_time(entry.first),
            "lastTimestamp": format_time(entry.last),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }

    def _drop(self, error: KubeError) -> None:
        """What could not be written is lost; the event may be stored, and is counted on."""
        self.dropped += 1
        # Somebody else leads now and records what it does.
        if not isinstance(error, MayNotWrite) and str(error) != self._refusal:
            self._refusal = str(error)
            log.warning("Events are not recorded", error=error)


def _forget(remembered: OrderedDict[Any, Any]) -> None:
    if len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)
