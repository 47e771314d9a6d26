"""The answer of a forecast: how a rollout went. Values only."""

from __future__ import annotations

from typing import Any

import msgspec

Object = dict[str, Any]


class ForecastError(ValueError):
    """A forecast that is not possible; the message says what is wrong with the request."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the rollout went; field names are those of the JSON output."""

    name: str
    ending: str  # complete, held, stopped, incomplete, unchanged or endless
    seconds: float  # until the last node became available or unavailable
    nodes: int  # that run the DaemonSet
    updated: int
    held: int
    to_come: int  # in scope of the update, and not updated yet
    stuck: tuple[str, ...]  # nodes at the new version that did not become available
    silent: tuple[str, ...]
    surging: bool
    budget: int  # maxUnavailable or maxSurge in nodes
    most_down: int
    most_doubled: int
    partition: int
    selector: bool
    paused: bool
    on_delete: bool
    writes: dict[str, int]  # of the controller, by kind
    message: str  # of the condition Progressing
    curve: tuple[tuple[float, int, int], ...]  # seconds, updated, down
    removed: int = 0  # nodes that lost their pod because the new template does not want them

    @property
    def per_minute(self) -> float:
        """Nodes updated in a minute, without those that were before it began."""
        before = self.curve[0][1] if self.curve else 0
        return (self.updated - before) * 60 / self.seconds if self.seconds else 0.0

    @property
    def writes_per_pod(self) -> float:
        """Writes of the controller per updated pod."""
        moved = self.updated + len(self.stuck)
        return sum(self.writes.values()) / moved if moved else 0.0
