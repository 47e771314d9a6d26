"""events.k8s.io/v1: the fields of stored core events under their other names."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]

# Name in events.k8s.io, name in the core group.
_EVENTS_TO_CORE: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
# Core events always have these fields.
_CORE_ZERO_VALUES: Final[Object] = {
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_CORE_TO_EVENTS: Final = {core: new for new, core in _EVENTS_TO_CORE.items()}


class EventConversion:
    """Converts between events.k8s.io/v1 and stored core events."""

    def show(self, stored: Object) -> Object:
        """Convert a core event to events.k8s.io."""
        shown = {
            _CORE_TO_EVENTS.get(key, key): value for key, value in stored.items() if value != ""
        }
        series = shown.get("series")
        if isinstance(series, dict):  # its count is always present here, unlike in the core group
            shown["series"] = {"count": 0, **series}
        return {**shown, "apiVersion": "events.k8s.io/v1"}

    def store(self, shown: Object) -> Object:
        """Convert an event of events.k8s.io to the core group."""
        stored = {_EVENTS_TO_CORE.get(key, key): value for key, value in shown.items()}
        series = stored.get("series")
        if isinstance(series, dict) and series.get("count") == 0:
            stored["series"] = {key: value for key, value in series.items() if key != "count"}
        return {**_CORE_ZERO_VALUES, **stored, "apiVersion": "v1"}
