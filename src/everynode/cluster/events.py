"""Events as events.k8s.io shows them: the same storage in other words."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]

# Name in events.k8s.io, name in the core group.
_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK: Final = {core: new for new, core in _NAMES.items()}


class EventsView:
    """events.k8s.io/v1 on top of stored core events."""

    def show(self, stored: Object) -> Object:
        """A core event in the words of events.k8s.io."""
        shown = {_BACK.get(key, key): value for key, value in stored.items() if value != ""}
        return {**shown, "apiVersion": "events.k8s.io/v1"}

    def store(self, shown: Object) -> Object:
        """An event of events.k8s.io in the words of the core group."""
        stored = {_NAMES.get(key, key): value for key, value in shown.items()}
        return {**stored, "apiVersion": "v1"}
