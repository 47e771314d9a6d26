"""Recorder: Kubernetes Events on DaemonSets, combined so that a large rollout writes few of them.

The first ten events of a type and reason on an object are written one by one. Further ones within
ten minutes are combined into one Event whose count goes up. Each object has a rate limit (a token
bucket) per event type. The last state is always written in the end, at shutdown too.
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
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.decide.actions import Notice
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
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
from everynode.log import Log

COMPONENT: Final = "daemonset-controller"  # the name that tools filter by
MAX_SEPARATE: Final = 10  # events of one type and reason that are written one by one
COMBINE_WINDOW: Final = 600.0  # seconds after which similar events are separate again
BURST: Final = 25  # tokens: events of one type that an object may get at once
FINAL_RESERVE: Final = 2  # of those tokens, kept for the last counts of a rollout
LAST_WORDS: Final = 4  # events of one type that an object may get beyond that at shutdown
REFILL_SECONDS: Final = 60.0  # seconds until a token comes back
MAX_PENDING: Final = 1000  # events that may wait; beyond that, the oldest are dropped
_MAX_REMEMBERED: Final = 1024
_MAX_MESSAGE: Final = 1024  # characters
_COMBINED: Final = "(combined from similar events): "
_TRY_AGAIN: Final = (Unavailable, TooManyRequests, UnknownOutcome)
_BACKOFF: Final = Backoff(first=2.0, longest=30.0)
_SHORTEST_SLEEP: Final = 0.01
log: Final = Log("events")

Key = tuple[str, str, str, str]  # uid, type, reason, message; the message is empty where combined


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
    """The rate limit of one event type on one object."""

    tokens: float = BURST
    filled_at: float = 0.0

    def fill(self, now: float) -> None:
        passed = max(0.0, now - self.filled_at)  # not negative
        self.tokens = min(BURST, self.tokens + passed / REFILL_SECONDS)
        self.filled_at = now

    def take(self, needed: int = 1) -> bool:
        """Take a token if there are this many of them."""
        if self.tokens < needed:
            return False
        self.tokens -= 1
        return True

    def full_at(self, tokens: int) -> float:
        """When there will be this many tokens."""
        return self.filled_at + max(0.0, tokens - self.tokens) * REFILL_SECONDS


class Recorder:
    """Accepts events without waiting and writes them in the background."""

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
        self._final: dict[Key, None] = {}  # of those, may use the reserve
        self._wake = asyncio.Event()
        self._refusal = ""
        self._stamp = 0  # of the last name made

    def record(self, about: ObjectReference, notice: Notice) -> None:
        """Accept an event on an object; it is written later."""
        message = notice.message[:_MAX_MESSAGE]
        key = self._key(about.uid, notice, message)
        text = message if key[3] else f"{_COMBINED}{message}"[:_MAX_MESSAGE]
        now = self._clock.now()
        entry = self._entries.get(key)
        if entry is None:
            name = self._new_name(about.name, now)
            entry = _Entry(about, notice.type, notice.reason, text, now, now, name)
            self._entries[key] = entry
            _trim(self._entries)
        else:
            self._entries.move_to_end(key)
            entry.count, entry.last, entry.message = entry.count + 1, now, text
        if key not in self._waiting:
            self._waiting[key] = entry
            self._wake.set()
        if len(self._waiting) > MAX_PENDING:
            self._waiting.popitem(last=False)
            self.dropped += 1

    def hurry(self, uid: str) -> None:
        """Write the waiting events of this object from the reserve: the rollout is over."""
        last = [key for key in self._waiting if key[0] == uid or key in self._final]
        self._final = dict.fromkeys(last)
        self._wake.set()

    async def run(self) -> None:
        """Write accepted events until cancelled."""
        failures = 0
        while True:
            key, pause = self._take_next()
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
                longest = _BACKOFF.delay(failures)
                await self._clock.sleep(self._clock.jitter(longest / 2, longest))
            except KubeError as error:
                self._drop(error)

    async def flush(self, seconds: float) -> None:
        """Write the events that wait now, within this time: what is not written then is lost.

        Called at shutdown. An object whose tokens are spent gets its newest few events all the
        same: they carry the last counts.
        """
        entries = self._take_last()
        if not entries:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for entry in entries:
                    await self._write_or_drop(entry)

    def _take_last(self) -> list[_Entry]:
        """Take the newest waiting events that tokens and last words allow; return oldest first."""
        now = self._clock.monotonic()
        beyond: dict[tuple[str, str], int] = {}
        taken: list[_Entry] = []
        oldest_first = sorted(self._waiting.items(), key=lambda item: item[1].last)
        for (uid, kind, *_), entry in reversed(oldest_first):
            owner = (uid, kind)
            bucket = self._buckets.setdefault(owner, _Bucket(filled_at=now))
            bucket.fill(now)
            if not bucket.take():
                beyond[owner] = beyond.get(owner, 0) + 1
            if beyond.get(owner, 0) <= LAST_WORDS:
                taken.append(entry)
            else:
                self.dropped += 1
        self._waiting.clear()
        return taken[::-1]

    async def _write_or_drop(self, entry: _Entry) -> None:
        try:
            await self._write(entry)
        except KubeError as error:
            self._drop(error)

    # --- Which one ---------------------------------------------------------------------------

    def _key(self, uid: str, notice: Notice, message: str) -> Key:
        kind = (uid, notice.type, notice.reason)
        similar = self._similar.setdefault(kind, _Similar())
        self._similar.move_to_end(kind)
        _trim(self._similar)
        now = self._clock.monotonic()
        if now - similar.last > COMBINE_WINDOW:
            similar.messages.clear()
            self._entries.pop((*kind, ""), None)  # further ones go into a new combined Event
        similar.last = now
        if message in similar.messages or len(similar.messages) < MAX_SEPARATE:
            similar.messages.add(message)
            return (*kind, message)
        return (*kind, "")

    def _take_next(self) -> tuple[Key | None, float | None]:
        """Return the oldest event that may be written, taking its token, or how long to wait."""
        now = self._clock.monotonic()
        due: list[float] = []
        spent: set[tuple[tuple[str, str], int]] = set()
        for key in self._waiting:
            owner = key[:2]
            # Combined events leave a reserve for their last count, when the rollout is over.
            needed = 1 if key[3] or key in self._final else 1 + FINAL_RESERVE
            if (owner, needed) in spent:
                continue
            bucket = self._buckets.setdefault(owner, _Bucket(filled_at=now))
            self._buckets.move_to_end(owner)
            bucket.fill(now)
            if bucket.take(needed):
                self._final.pop(key, None)
                _trim(self._buckets)
                return key, None
            spent.add((owner, needed))
            due.append(bucket.full_at(needed))
        # Rounding can leave a token slightly short: sleep at least a little, no busy loop.
        return None, max(min(due) - now, _SHORTEST_SLEEP) if due else None

    async def _sleep(self, pause: float | None) -> None:
        """Wait for a new event, or for this long."""
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
            except NotFound:  # the API server deletes Events after an hour
                entry.written = False
                entry.name = self._new_name(entry.about.name, entry.last)
        body = self._body(entry, namespace)
        create = verbs.create(EVENTS, body, namespace=namespace, manager=FIELD_MANAGER)
        # AlreadyExists: the response to an earlier attempt was lost.
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
        """Count an event as lost; later ones of the same kind are still combined with it."""
        self.dropped += 1
        # NotLeader: another leader records its own events now.
        if not isinstance(error, NotLeader) and str(error) != self._refusal:
            self._refusal = str(error)
            log.warning("Events are not recorded", error=error)


def _trim(remembered: OrderedDict[Any, Any]) -> None:
    if len(remembered) > _MAX_REMEMBERED:
        remembered.popitem(last=False)
