"""Read batching: at which moments the connections of one client are read.

While watch events trickle in, a process that wakes up for each of them spends more CPU on waking up
than on the events. So all connections are read at the same moments, READ_INTERVAL apart. Data that
arrives after a silence is read at once.
"""

from __future__ import annotations

from typing import Final

READ_INTERVAL: Final = 0.05  # seconds
BULK_BYTES: Final = 256 * 1024  # this much data at once does not trickle, and is read at once
_BUSY_BYTES: Final = 48 * 1024  # more bytes than this between two reads double the interval


class ReadBatcher:
    """Chooses the next moment to read; one for all connections of a client.

    Moments are multiples of the interval. With an interval of 0.05 s, data that arrives at 100.01
    is followed by a read at 100.05 on every connection that is waiting by then. The response to a
    write sent at 100.03 is read at 100.05, too; that of a write sent at 100.20, when nothing came
    for a while, is read when it comes.
    """

    __slots__ = ("_bytes", "_next")

    def __init__(self) -> None:
        self._next = 0.0  # the moment chosen last; it may have passed
        self._bytes = 0  # received since the moment before that one

    def next_read(self, now: float, size: int) -> float:
        """Return when a stream that has just received `size` bytes is read again."""
        if now < self._next:
            self._bytes += size
            return self._next
        self._bytes = size
        return self._choose(now)

    def next_response_read(self, now: float) -> float | None:
        """Return when to read the response to a write; None to read it as soon as it comes.

        It is None while no stream is being read in batches: there is nothing to wait for.
        """
        if now < self._next:
            return self._next
        return self._choose(now) if now < self._next + READ_INTERVAL else None

    def _choose(self, now: float) -> float:
        interval = 2 * READ_INTERVAL if self._bytes > _BUSY_BYTES else READ_INTERVAL
        self._next = (now // interval + 1) * interval
        return self._next
