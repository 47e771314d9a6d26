"""Change log: the recent changes of each collection, from which watches read.

All logs together are capped in bytes; the oldest change of all is dropped first. A watch that asks
for a dropped change gets 410 Expired, as after a compaction of etcd.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from everynode.apiserver.storage.store import Change


class LogReader(Protocol):
    """A reader (a watch) that has read the whole log and waits for the next change."""

    def accept(self, change: Change) -> bool:
        """Receive the newest change; return False to stay registered (it was not selected)."""
        ...

    def wake(self) -> None:
        """Read the log again; the reader is no longer registered."""
        ...


class ChangeLog:
    """The changes of one collection, at consecutive positions; a reader remembers a position."""

    def __init__(self, compacted: int) -> None:
        self.compacted = compacted  # changes up to this version have been dropped
        self._changes: deque[Change] = deque()
        self.end = 0  # the position that the next change will get
        self._first_position = 0  # the position of the oldest kept change
        self._waiting: list[LogReader] = []

    def append(self, change: Change) -> None:
        """Append the newest change."""
        self._changes.append(change)
        self.end += 1

    def position(self, version: int) -> int | None:
        """Return the position of the first change after a version; None if it was dropped."""
        if version < self.compacted:
            return None
        return self._first_position + bisect_right(self._changes, version, key=lambda c: c.version)

    def read(self, position: int, *, up_to_version: int, limit: int) -> list[Change] | None:
        """Return at most `limit` changes from a position on; None if that one was dropped.

        Changes above `up_to_version` are left out: they are not durable yet.
        """
        start = position - self._first_position
        if start < 0:
            return None
        changes = self._changes
        found = [changes[index] for index in range(start, min(start + limit, len(changes)))]
        while found and found[-1].record.version > up_to_version:
            found.pop()
        return found

    def since_version(self, version: int) -> list[Change] | None:
        """Return every change after a version; None if some were dropped."""
        position = self.position(version)
        if position is None:
            return None
        start = position - self._first_position
        return [self._changes[index] for index in range(start, len(self._changes))]

    @property
    def oldest(self) -> int:
        """The version of the oldest kept change; the log must not be empty."""
        return self._changes[0].version

    def drop_oldest(self) -> int:
        """Drop the oldest change and return its size in bytes."""
        change = self._changes.popleft()
        self._first_position += 1
        self.compacted = change.version
        return change.size

    def wait(self, reader: LogReader) -> None:
        """Register a reader for the next change; it stays until it accepts one."""
        self._waiting.append(reader)

    def stop_waiting(self, reader: LogReader) -> None:
        """Unregister a reader; a log without changes would keep a closed watch in memory."""
        if reader in self._waiting:
            self._waiting.remove(reader)

    @property
    def waiting(self) -> int:
        """Number of registered readers."""
        return len(self._waiting)

    def notify(self, change: Change) -> None:
        """Pass the newest change to registered readers; those that return False stay registered."""
        if self._waiting:
            self._waiting = [reader for reader in self._waiting if not reader.accept(change)]

    def wake(self) -> None:
        """Wake and unregister all readers."""
        waiting, self._waiting = self._waiting, []
        for reader in waiting:
            reader.wake()


class ChangeHistory:
    """The logs of all collections, and the bytes they may keep together."""

    def __init__(self, *, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0
        self._compacted_for_all = 0  # changes up to this version are in no log
        self._logs: list[ChangeLog] = []
        self._order: deque[ChangeLog] = deque()  # the log of each kept change, oldest first

    def log(self) -> ChangeLog:
        """Return the log of a new, empty collection."""
        log = ChangeLog(self._compacted_for_all)
        self._logs.append(log)
        return log

    def append(self, log: ChangeLog, change: Change) -> None:
        """Append a change; drop the oldest changes while all logs exceed `capacity` bytes."""
        log.append(change)
        self._order.append(log)
        self.size += change.size
        while self.size > self.capacity and len(self._order) > 1:
            self.size -= self._order.popleft().drop_oldest()

    def compact(self, version: int) -> None:
        """Drop every change up to a version, as a compaction of etcd does."""
        while self._order and self._order[0].oldest <= version:
            self.size -= self._order.popleft().drop_oldest()
        self._compacted_for_all = max(self._compacted_for_all, version)
        for log in self._logs:
            log.compacted = max(log.compacted, version)

    def wake(self) -> None:
        """Wake the readers of every log."""
        for log in self._logs:
            log.wake()
