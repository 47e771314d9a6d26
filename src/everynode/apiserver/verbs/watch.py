"""Watch: the changes of a collection from a resourceVersion on, until the timeout.

The events of a watch come from three sources, read in this order:

1. `_initial`: the objects at the start, sent as ADDED, when the client names no resourceVersion or
   asks for `sendInitialEvents`.
2. `_accepted`: one change that the log handed over while the watch was waiting at the log's end.
   This is the usual case and saves reading the log.
3. the change log from `_position` on, when the watch has fallen behind.

Besides these a timer wakes the watch for a bookmark (once a minute) and for its timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from everynode.apiserver.errors import StatusError, expired
from everynode.apiserver.output.representation import Representation
from everynode.apiserver.storage.selectors import Selection
from everynode.apiserver.storage.store import Change, Collection, Record, Store, with_version
from everynode.kube.transport import Event

SelectedChange = tuple[str, Record]  # event type, and the object that the client sees

BOOKMARK_SECONDS: Final = 60.0
_BATCH: Final = 500
_COMPACTED: Final = -1  # a position that no log has: the first read finds it dropped
_PREFIX: Final = {
    kind: f'{{"type":"{kind}","object":'.encode()
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


class WatchOptions(msgspec.Struct, frozen=True):
    """The options of a watch request."""

    since_version: int | None  # None: start with the current objects
    bookmarks: bool = False
    initial_end: bool = False  # send a bookmark after the initial objects
    timeout_seconds: float = 1800.0


def encode_event(kind: str, body: bytes) -> bytes:
    """Encode one event as a line of the stream."""
    return b"%b%b}" % (_PREFIX[kind], body)


def _same_to_selectors(record: Record, previous: Record) -> bool:
    """Whether every selector gives the same answer for both: the store shares unchanged values."""
    return record.labels is previous.labels and record.fields is previous.fields


class Watch:
    """One client's watch of one collection; see the module's docstring for its three sources."""

    status = 200

    def __init__(
        self,
        store: Store,
        collection: Collection,
        selection: Selection,
        *,
        form: Representation,
        options: WatchOptions,
    ) -> None:
        self._store = store
        self._log = collection.log
        self._selection = selection
        self._filtered = selection.filtered
        self._form = form
        self._options = options
        self._closed = False
        self.on_close: Callable[[Watch], None] | None = None  # called once
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._registered = False  # whether the log will notify this watch
        self._accepted: SelectedChange | None = None  # source 2
        self._deadline = self._loop.time() + options.timeout_seconds
        self._bookmark_at = self._next_bookmark()
        self._timer = self._loop.call_at(min(self._deadline, self._bookmark_at), self._timer_fired)
        self._initial: list[Record] = []  # source 1, last first
        self._initial_sent = options.since_version is not None
        if options.since_version is None:
            self._version = store.version
            records = collection.scan(selection.namespace)
            self._initial = [record for record in records if selection.matches(record)]
            self._initial.reverse()
        else:
            self._version = options.since_version
        position = self._log.position(self._version)
        self._position = _COMPACTED if position is None else position

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        return self._closed

    async def next(self) -> list[bytes]:
        """Return the next lines, at least one; an empty list when the watch has ended."""
        return [encode_event(*event) for event in await self.events()]

    async def events(self) -> list[Event]:
        """Return the next events, at least one; an empty list when the watch has ended."""
        while not self._closed:
            events = self._ready_events()
            if events:
                return events
            if self._loop.time() >= self._deadline:
                self.close()
                break
            self._waiter = self._loop.create_future()
            if not self._registered:
                self._registered = True
                self._log.wait(self)
            await self._waiter
        return []

    def accept(self, change: Change) -> bool:
        """Receive the newest change from the log; return False to stay registered for the next.

        A change that is not selected only moves the position, and the client's task sleeps on. If
        the watch is not waiting at the log's end, it is woken and reads the log itself.
        """
        if self._waiter is None or self._waiter.done() or self._position != self._log.end - 1:
            self.wake()
            return True
        self._position += 1
        self._version = change.record.version
        self._accepted = self._select(change)
        if self._accepted is None:
            return False
        self.wake()
        return True

    def wake(self) -> None:
        """Wake the client's task; the log has unregistered this watch."""
        self._registered = False
        self._wake_waiter()

    def close(self) -> None:
        """End the watch and wake the client's task."""
        if not self._closed:
            self._closed = True
            self._timer.cancel()
            self._initial.clear()
            if self._registered:
                self._registered = False
                self._log.stop_waiting(self)
            self._wake_waiter()
            if self.on_close is not None:
                self.on_close(self)

    def _wake_waiter(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _next_bookmark(self) -> float:
        """Return when the next bookmark is due: once a minute, and 2 s before the timeout."""
        now = self._loop.time()
        last = self._deadline - 2.0
        due = now + BOOKMARK_SECONDS
        return due if due < last or last <= now else last

    def _timer_fired(self) -> None:
        """Wake the client's task for a bookmark or the timeout."""
        due = min(self._deadline, self._bookmark_at)
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._timer_fired)
        else:
            self._wake_waiter()

    def _ready_events(self) -> list[Event]:
        if self._accepted is not None:
            (kind, record), self._accepted = self._accepted, None
            accepted = kind, self._form.one(record)
            return (
                [accepted, *self._events_from_log()]
                if self._position != self._log.end
                else [accepted]
            )
        if not self._initial_sent:
            return self._initial_events()
        if self._position == self._log.end and self._loop.time() < self._bookmark_at:
            return []
        events = self._events_from_log()
        if not events and self._loop.time() >= self._bookmark_at:
            return self._bookmark_event()
        return events

    def _events_from_log(self) -> list[Event]:
        """Read the log (source 3) in batches until there is at least one selected change."""
        events: list[Event] = []
        while not events and self._position != self._log.end:
            changes = self._log.read(
                self._position, up_to_version=self._store.durable, limit=_BATCH
            )
            if changes is None:
                return [self._expired_event()]
            if not changes:
                break
            self._position += len(changes)
            self._version = changes[-1].version
            shown = [found for change in changes if (found := self._select(change)) is not None]
            events = [(kind, self._form.one(record)) for kind, record in shown]
        return events

    def _initial_events(self) -> list[Event]:
        if self._store.durable < self._version:
            return []
        events: list[Event] = []
        while self._initial and len(events) < _BATCH:
            events.append(("ADDED", self._form.one(self._initial.pop())))
        if not self._initial:
            self._initial_sent = True
            if self._options.initial_end:
                events.append(("BOOKMARK", self._form.bookmark(self._version, initial_end=True)))
        return events or self._ready_events()

    def _bookmark_event(self) -> list[Event]:
        self._bookmark_at = self._next_bookmark()
        self._timer.cancel()
        self._timer = self._loop.call_at(min(self._deadline, self._bookmark_at), self._timer_fired)
        if not self._options.bookmarks:
            return []
        # The watch has read everything up to here, whether or not it was selected.
        self._version = max(self._version, self._store.durable)
        return [("BOOKMARK", self._form.bookmark(self._version, initial_end=False))]

    def _select(self, change: Change) -> SelectedChange | None:
        """Translate a change to what a client sees that knows only the selected objects.

        An object that starts to match is ADDED, one that no longer matches is DELETED (with its
        previous content at the new resourceVersion).
        """
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
        if was if _same_to_selectors(record, previous) else selection.matches(record):
            return ("MODIFIED" if was else "ADDED"), record
        return ("DELETED", with_version(previous, record.version)) if was else None

    def _expired_event(self) -> Event:
        message = f"too old resource version: {self._version} ({self._log.compacted})"
        refusal: StatusError = expired(message)
        self.close()
        return "ERROR", msgspec.json.encode(refusal.status())
