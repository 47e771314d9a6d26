"""Events are forgotten an hour after they were last heard of, as in every cluster."""

from __future__ import annotations

from collections import deque
from typing import Final

from everynode.clock import Clock
from everynode.cluster.store import Change, Store

LIFETIME: Final = 3600.0  # seconds
EVENTS: Final = "events"


class Expiry:
    """Takes away old events whenever a new one comes, so that nothing has to run in between."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # When an event was written, its key, and the version it then had; oldest first.
        self._written: deque[tuple[float, str, int]] = deque()
        for record in store.collection(EVENTS).scan():
            self._written.append((clock.now(), record.key, record.version))
        store.observe(EVENTS, self._changed)

    def _changed(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        now = self._clock.now()
        self._written.append((now, change.record.key, change.version))
        collection = self._store.collection(EVENTS)
        while self._written[0][0] <= now - LIFETIME:
            _, key, version = self._written.popleft()
            record = collection.records.get(key)
            # One that was written again since then has an entry of its own.
            if record is not None and record.version == version:
                self._store.remove(collection, record)
