"""Table row of an event, of the core group or of events.k8s.io."""

from __future__ import annotations

from typing import Any

from everynode.apiserver.output.table.cells import Row, format_age, get_object, name_of

Object = dict[str, Any]


def event_row(obj: Object, now: float) -> Row:
    """An event: times, type, reason, object, message and count."""
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    first = first or obj.get("eventTime")
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = get_object(obj, "series")
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    elif not last:
        last = first
    about = get_object(obj, "involvedObject") or get_object(obj, "regarding")
    kind, name = str(about.get("kind", "")).lower(), about.get("name", "")
    return Row(
        [
            format_age(last, now),
            obj.get("type", ""),
            obj.get("reason", ""),
            f"{kind}/{name}" if name else kind,
            about.get("fieldPath", ""),
            _source(obj),
            str(obj.get("message") or obj.get("note") or "").strip(),
            format_age(first, now),
            count,
            name_of(obj),
        ]
    )


def _source(obj: Object) -> str:
    source = get_object(obj, "source") or get_object(obj, "deprecatedSource")
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or ""
    component = source.get("component") or reporter
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)
