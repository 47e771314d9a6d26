"""A watch: the changes of a collection from some version on, as lines, for as long as wanted."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from everynode.cluster.errors import Refusal, expired
from everynode.cluster.forms import Form
from everynode.cluster.selection import Selection
from everynode.cluster.store import Change, Collection, Record, Store, at_version

BOOKMARK_SECONDS: Final = 60.0
_BATCH: Final = 500
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
        self._form = form
        self._terms = terms
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
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
        self._position = self._log.position(self._seen)

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    async def next(self) -> list[bytes]:
        """The next lines, at least one; none when the watch has ended."""
        while not self._closed:
            lines = self._lines()
            if lines:
                return lines
            if self._loop.time() >= self._ends:
                self.close()
                break
            self._waiting = self._log.wait()
            await self._waiting
        return []

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
        now = self._loop.time()
        if now < self._ends:
            due = self._bookmark_at if self._bookmark_at > now else self._ends
            self._timer = self._loop.call_at(min(self._ends, due), self._tick)
        self._tell()

    def _lines(self) -> list[bytes]:
        if not self._initial_sent:
            return self._initial_lines()
        if self._position is None:
            return [self._too_old()]
        if self._position == self._log.end and self._loop.time() < self._bookmark_at:
            return []
        changes = self._log.read(self._position, upto=self._store.durable, most=_BATCH)
        if changes is None:
            return [self._too_old()]
        self._position += len(changes)
        lines = [found for change in changes if (found := self._line(change)) is not None]
        if changes:
            self._seen = changes[-1].version
        if not lines and self._loop.time() >= self._bookmark_at:
            return self._bookmark()
        return lines

    def _initial_lines(self) -> list[bytes]:
        if self._store.durable < self._seen:
            return []
        lines: list[bytes] = []
        while self._initial and len(lines) < _BATCH:
            lines.append(line("ADDED", self._form.one(self._initial.pop())))
        if not self._initial:
            self._initial_sent = True
            if self._terms.initial_end:
                lines.append(line("BOOKMARK", self._form.bookmark(self._seen, initial_end=True)))
        return lines or self._lines()

    def _bookmark(self) -> list[bytes]:
        self._bookmark_at = self._next_bookmark()
        self._timer.cancel()
        self._timer = self._loop.call_at(min(self._ends, self._bookmark_at), self._tick)
        if not self._terms.bookmarks:
            return []
        # Everything up to here has been looked at, whether or not it was of interest.
        self._seen = max(self._seen, self._store.durable)
        return [line("BOOKMARK", self._form.bookmark(self._seen, initial_end=False))]

    def _line(self, change: Change) -> bytes | None:
        """What a change means to someone who sees only the selected objects."""
        record, previous = change.record, change.previous
        if not self._selection.filtered:
            if self._selection.namespace and record.namespace != self._selection.namespace:
                return None
            return line(change.type, self._form.one(record))
        was = previous is not None and self._selection.matches(previous)
        if change.type == "DELETED":
            return line("DELETED", self._form.one(record)) if was else None
        if self._selection.matches(record):
            return line("MODIFIED" if was else "ADDED", self._form.one(record))
        if was and previous is not None:
            return line("DELETED", self._form.one(at_version(previous, record.version)))
        return None

    def _too_old(self) -> bytes:
        message = f"too old resource version: {self._seen} ({self._log.compacted})"
        refusal: Refusal = expired(message)
        self.close()
        return line("ERROR", msgspec.json.encode(refusal.status()))
