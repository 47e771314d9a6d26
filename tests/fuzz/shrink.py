"""Shrinking a failure: fewer requests first, then smaller ones."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from tests.fuzz.requests import DrawnRequest

_MOST: Final = 150  # replays
_LONGEST: Final = 20_000  # bytes of a body that is looked into

Fails = Callable[[list[DrawnRequest]], Awaitable[bool]]


async def smallest(asked: list[DrawnRequest], fails: Fails) -> list[DrawnRequest]:
    """The fewest and smallest of these requests, in their order, that still fail."""
    left = _MOST
    found = True
    while found and left > 0:
        found = False
        for fewer in _smaller(asked):
            left -= 1
            if await fails(fewer):
                asked, found = fewer, True
                break
            if left <= 0:
                break
    return asked


def _smaller(asked: list[DrawnRequest]) -> Iterator[list[DrawnRequest]]:
    size = len(asked) // 2
    while size:
        for at in range(0, len(asked), size):
            yield asked[:at] + asked[at + size :]
        size //= 2
    for at, each in enumerate(asked):
        for less in _less(each):
            yield [*asked[:at], less, *asked[at + 1 :]]


def _less(asked: DrawnRequest) -> Iterator[DrawnRequest]:
    for at, (name, _) in enumerate(asked.query):
        if name != "dryRun":  # or what is only tried would come to stay
            yield replace(asked, query=asked.query[:at] + asked.query[at + 1 :])
    if asked.accept != "application/json":
        yield replace(asked, accept="application/json")
    if not asked.body or len(asked.body) > _LONGEST:
        return
    try:
        value = json.loads(asked.body)
    except (ValueError, RecursionError):
        size = len(asked.body) // 2
        while size >= 4:
            for at in range(0, len(asked.body), size):
                yield replace(asked, body=asked.body[:at] + asked.body[at + size :])
            size //= 2
        return
    for less in _parts(value):
        yield replace(asked, body=json.dumps(less).encode())


def _parts(value: Any) -> Iterator[Any]:
    """The value without one of its members, or with a smaller one."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            for less in _parts(item):
                yield {**value, key: less}
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, item in enumerate(value):
            for less in _parts(item):
                yield [*value[:at], less, *value[at + 1 :]]
    elif isinstance(value, str) and len(value) > 8:
        yield value[: len(value) // 2]
