"""What happened: one log per collection, all together capped in bytes, oldest forgotten first."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from everynode.cluster.store import Change


class Reader(Protocol):
    """Somebody who has read everything and waits for more."""

    def offer(self, change: Change) -> bool:
        """Take the newest change; False to go on waiting, as it is of no interest."""
        ...

    def wake(self) -> None:
        """Look again."""
        ...


class Log:
    """The changes of one collection, numbered without gaps; readers hold a number, not a link."""

    def __init__(self, compacted: int) -> None:
        self.compacted = compacted  # changes up to this version are no longer here
        self._changes: deque[Change] = deque()
        self.end = 0  # the number that the next change will have
        self._base = 0  # the number of the oldest change
        self._waiting: list[Reader] = []

    def append(self, change: Change) -> None:
        """Add the newest change."""
        self._changes.append(change)
        self.end += 1

    def position(self, version: int) -> int | None:
        """The number of the first change after a version; None when it is forgotten."""
        if version < self.compacted:
            return None
        return self._base + bisect_right(self._changes, version, key=lambda c: c.version)

    def read(self, position: int, *, upto: int, most: int) -> list[Change] | None:
        """Changes from a number on, up to a version; None when the number is forgotten."""
        start = position - self._base
        if start < 0:
            return None
        changes = self._changes
        found = [changes[index] for index in range(start, min(start + most, len(changes)))]
        while found and found[-1].record.version > upto:
            found.pop()
        return found

    def since(self, version: int) -> list[Change] | None:
        """Every change after a version; None when some are forgotten."""
        position = self.position(version)
        if position is None:
            return None
        start = position - self._base
        return [self._changes[index] for index in range(start, len(self._changes))]

    @property
    def oldest(self) -> int:
        """The version of the oldest change that is still here; asked only when there is one."""
        return self._changes[0].version

    def drop_oldest(self) -> int:
        """Forget the oldest change; returns the bytes it kept."""
        change = self._changes.popleft()
        self._base += 1
        self.compacted = change.version
        return change.size

    def wait(self, reader: Reader) -> None:
        """Have a reader told of what comes, once."""
        self._waiting.append(reader)

    def tell(self, change: Change) -> None:
        """Offer the newest change to all who wait; whom it does not concern waits on."""
        if self._waiting:
            self._waiting = [reader for reader in self._waiting if not reader.offer(change)]

    def wake(self) -> None:
        """Let everybody look again."""
        waiting, self._waiting = self._waiting, []
        for reader in waiting:
            reader.wake()


class History:
    """All logs, and the bytes they may keep together."""

    def __init__(self, *, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0
        self._floor = 0  # what no log can know anything of
        self._logs: list[Log] = []
        self._order: deque[Log] = deque()  # which log got a change, oldest first

    def log(self) -> Log:
        """A new log, for a collection in which nothing has happened yet."""
        log = Log(self._floor)
        self._logs.append(log)
        return log

    def append(self, log: Log, change: Change) -> None:
        """Add a change, and forget the oldest ones when there are too many bytes."""
        log.append(change)
        self._order.append(log)
        self.size += change.size
        while self.size > self.capacity and len(self._order) > 1:
            self.size -= self._order.popleft().drop_oldest()

    def forget(self, version: int) -> None:
        """Forget everything up to a version, as a compaction does."""
        while self._order and self._order[0].oldest <= version:
            self.size -= self._order.popleft().drop_oldest()
        self._floor = max(self._floor, version)
        for log in self._logs:
            log.compacted = max(log.compacted, version)

    def wake(self) -> None:
        """Let every reader of every log look again."""
        for log in self._logs:
            log.wake()
