"""Event TTL: Event objects are removed an hour after their last write, as by kube-apiserver."""

from __future__ import annotations

from collections import deque
from typing import Final

from everynode.apiserver.storage.store import Change, Store
from everynode.clock import Clock

EVENT_TTL: Final = 3600.0  # seconds
EVENT_COLLECTION: Final = "events"


class EventExpiry:
    """Removes expired events whenever another is written, so that no background task is needed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # Time of a write, key of the event, and its version then; oldest first.
        self._written: deque[tuple[float, str, int]] = deque()
        for record in store.collection(EVENT_COLLECTION).scan():
            self._written.append((clock.now(), record.key, record.version))
        store.observe(EVENT_COLLECTION, self._changed)

    def _changed(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        now = self._clock.now()
        self._written.append((now, change.record.key, change.version))
        collection = self._store.collection(EVENT_COLLECTION)
        while self._written[0][0] <= now - EVENT_TTL:
            _, key, version = self._written.popleft()
            record = collection.records.get(key)
            # An event that was written again since then has a later entry.
            if record is not None and record.version == version:
                self._store.remove(collection, record)
