"""Nulls in JSON: where a field is null, the API server treats it as absent."""

from __future__ import annotations

from typing import Any


def drop_nulls(value: Any) -> Any:
    """Return the value without fields that are null, at every depth; lists keep their elements."""
    if isinstance(value, dict):
        return {key: drop_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [drop_nulls(each) for each in value]
    return value
