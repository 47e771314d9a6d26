"""A watch: the changes of a collection from some version on, for as long as wanted."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from everynode.cluster.errors import Refusal, expired
from everynode.cluster.forms import Form
from everynode.cluster.selection import Selection
from everynode.cluster.store import Change, Collection, Record, Store, at_version
from everynode.kube.transport import Event

Shown = tuple[str, Record]  # what happened, and the object that is shown for it

BOOKMARK_SECONDS: Final = 60.0
_BATCH: Final = 500
_FORGOTTEN: Final = -1  # a place that no log has
_PREFIX: Final = {
    kind: f'{{"type":"{kind}","object":'.encode()
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


class Terms(msgspec.Struct, frozen=True):
    """What the client wants of its watch."""

    since: int | None  # None: begin with what is there
    bookmarks: bool = False
    initial_end: bool = False  # say when everything that was there has been sent
    seconds: float = 1800.0


def line(kind: str, body: bytes) -> bytes:
    """One event of a stream."""
    return b"%b%b}" % (_PREFIX[kind], body)


def _look_alike(record: Record, previous: Record) -> bool:
    """Whether no selector can tell them apart: the store then shares what selectors ask for."""
    return record.labels is previous.labels and record.fields is previous.fields


class Watch:
    """One client's place in the history of one collection."""

    status = 200

    def __init__(
        self,
        store: Store,
        collection: Collection,
        selection: Selection,
        *,
        form: Form,
        terms: Terms,
    ) -> None:
        self._store = store
        self._log = collection.log
        self._selection = selection
        self._filtered = selection.filtered
        self._form = form
        self._terms = terms
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._listed = False  # whether the log knows that we wait
        self._offered: Shown | None = None  # what it has told us since then
        self._ends = self._loop.time() + terms.seconds
        self._bookmark_at = self._next_bookmark()
        self._timer = self._loop.call_at(min(self._ends, self._bookmark_at), self._tick)
        self._initial: list[Record] = []
        self._initial_sent = terms.since is not None
        if terms.since is None:
            self._seen = store.version
            records = collection.scan(selection.namespace)
            self._initial = [record for record in records if selection.matches(record)]
            self._initial.reverse()
        else:
            self._seen = terms.since
        position = self._log.position(self._seen)
        self._position = _FORGOTTEN if position is None else position

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    async def next(self) -> list[bytes]:
        """The next lines, at least one; none when the watch has ended."""
        return [line(*event) for event in await self.events()]

    async def events(self) -> list[Event]:
        """The next events, at least one; none when the watch has ended."""
        while not self._closed:
            events = self._pending()
            if events:
                return events
            if self._loop.time() >= self._ends:
                self.close()
                break
            self._waiting = self._loop.create_future()
            if not self._listed:
                self._listed = True
                self._log.wait(self)
            await self._waiting
        return []

    def offer(self, change: Change) -> bool:
        """Take the newest change, if it is the next one and of interest."""
        if self._waiting is None or self._waiting.done() or self._position != self._log.end - 1:
            self.wake()
            return True
        self._position += 1
        self._seen = change.record.version
        self._offered = self._shown(change)
        if self._offered is None:
            return False
        self.wake()
        return True

    def wake(self) -> None:
        """Look again; the log forgets that we wait."""
        self._listed = False
        self._tell()

    def close(self) -> None:
        """End the watch; whoever waits for it is told."""
        if not self._closed:
            self._closed = True
            self._timer.cancel()
            self._tell()

    def _tell(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _next_bookmark(self) -> float:
        """Once a minute, and shortly before the end."""
        now = self._loop.time()
        last = self._ends - 2.0
        due = now + BOOKMARK_SECONDS
        return due if due < last or last <= now else last

    def _tick(self) -> None:
        """The bookmark or the end is due: whoever looks next sees to it."""
        due = min(self._ends, self._bookmark_at)
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._tick)
        else:
            self._tell()

    def _pending(self) -> list[Event]:
        if self._offered is not None:
            (kind, record), self._offered = self._offered, None
            offered = kind, self._form.one(record)
            return [offered, *self._read()] if self._position != self._log.end else [offered]
        if not self._initial_sent:
            return self._initial_events()
        if self._position == self._log.end and self._loop.time() < self._bookmark_at:
            return []
        events = self._read()
        if not events and self._loop.time() >= self._bookmark_at:
            return self._bookmark()
        return events

    def _read(self) -> list[Event]:
        """What the log has beyond our place in it."""
        events: list[Event] = []
        while not events and self._position != self._log.end:
            changes = self._log.read(self._position, upto=self._store.durable, most=_BATCH)
            if changes is None:
                return [self._too_old()]
            if not changes:
                break
            self._position += len(changes)
            self._seen = changes[-1].version
            shown = [found for change in changes if (found := self._shown(change)) is not None]
            events = [(kind, self._form.one(record)) for kind, record in shown]
        return events

    def _initial_events(self) -> list[Event]:
        if self._store.durable < self._seen:
            return []
        events: list[Event] = []
        while self._initial and len(events) < _BATCH:
            events.append(("ADDED", self._form.one(self._initial.pop())))
        if not self._initial:
            self._initial_sent = True
            if self._terms.initial_end:
                events.append(("BOOKMARK", self._form.bookmark(self._seen, initial_end=True)))
        return events or self._pending()

    def _bookmark(self) -> list[Event]:
        self._bookmark_at = self._next_bookmark()
        self._timer.cancel()
        self._timer = self._loop.call_at(min(self._ends, self._bookmark_at), self._tick)
        if not self._terms.bookmarks:
            return []
        # Everything up to here has been looked at, whether or not it was of interest.
        self._seen = max(self._seen, self._store.durable)
        return [("BOOKMARK", self._form.bookmark(self._seen, initial_end=False))]

    def _shown(self, change: Change) -> Shown | None:
        """What a change means to someone who sees only the selected objects."""
        record, previous = change.record, change.previous
        selection = self._selection
        if not self._filtered:
            if selection.namespace and record.namespace != selection.namespace:
                return None
            return change.type, record
        if previous is None:
            return (change.type, record) if selection.matches(record) else None
        was = selection.matches(previous)
        if change.type == "DELETED":
            return ("DELETED", record) if was else None
        if was if _look_alike(record, previous) else selection.matches(record):
            return ("MODIFIED" if was else "ADDED"), record
        return ("DELETED", at_version(previous, record.version)) if was else None

    def _too_old(self) -> Event:
        message = f"too old resource version: {self._seen} ({self._log.compacted})"
        refusal: Refusal = expired(message)
        self.close()
        return "ERROR", msgspec.json.encode(refusal.status())
