"""Conditions of an object: set and find them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Set a condition; lastTransitionTime changes only with its status."""
    conditions = list(status.get("conditions") or [])
    for index, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            same = present.get("status") == condition["status"]
            since = present.get("lastTransitionTime", now) if same else now
            conditions[index] = {**condition, "lastTransitionTime": since}
            break
    else:
        conditions.append({**condition, "lastTransitionTime": now})
    status["conditions"] = conditions


def find_condition(obj: Object, kind: str) -> Object | None:
    """Return the condition of that type, None if the object has none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    """Whether the object has the condition with status True."""
    found = find_condition(obj, kind)
    return found is not None and found.get("status") == "True"
