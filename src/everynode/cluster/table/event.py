"""The row of an event, in either of the two forms that events have."""

from __future__ import annotations

from typing import Any

from everynode.cluster.table.cells import Row, name_of, part, since

Object = dict[str, Any]


def event_row(obj: Object, now: float) -> Row:
    """An event: when, what, about whom, how often."""
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    first = first or obj.get("eventTime")
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = part(obj, "series")
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    elif not last:
        last = first
    about = part(obj, "involvedObject") or part(obj, "regarding")
    kind, name = str(about.get("kind", "")).lower(), about.get("name", "")
    return Row(
        [
            since(last, now),
            obj.get("type", ""),
            obj.get("reason", ""),
            f"{kind}/{name}" if name else kind,
            about.get("fieldPath", ""),
            _source(obj),
            str(obj.get("message") or obj.get("note") or "").strip(),
            since(first, now),
            count,
            name_of(obj),
        ]
    )


def _source(obj: Object) -> str:
    source = part(obj, "source") or part(obj, "deprecatedSource")
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or ""
    component = source.get("component") or reporter
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)
