"""Accessors for JSON objects whose types have been checked: null is the same as absent."""

from __future__ import annotations

from collections.abc import Iterator

from everynode.api.validation.field_errors import Object


def text(parent: Object, name: str) -> str:
    """A string, empty if absent."""
    value = parent.get(name)
    return value if isinstance(value, str) else ""


def number(parent: Object, name: str) -> int | None:
    """An integer, None if absent."""
    value = parent.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(parent: Object, name: str) -> bool:
    """A boolean, false if absent."""
    return parent.get(name) is True


def section(parent: Object, name: str) -> Object | None:
    """An object, None if absent."""
    value = parent.get(name)
    return value if isinstance(value, dict) else None


def texts(parent: Object, name: str) -> list[str]:
    """A list of strings, empty if absent."""
    value = parent.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def pairs(parent: Object, name: str) -> dict[str, str]:
    """A map of strings, empty if absent."""
    value = parent.get(name)
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(item, str)}


def sections(parent: Object, name: str, path: str) -> Iterator[tuple[str, Object]]:
    """The objects of a list, each with its path."""
    value = parent.get(name)
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield f"{path}.{name}[{index}]", item
