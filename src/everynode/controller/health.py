"""Health: the checks behind /livez and /readyz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from everynode.clock import Clock
from everynode.kube.resources import Resource
from everynode.kube.watch.watcher import IDLE_LIMIT

# Seconds without data after which a watch is not fresh. A working watch receives a bookmark every
# minute; after IDLE_LIMIT without data, the watcher sends the request again.
MAX_SILENCE: Final = IDLE_LIMIT + 30.0
# Seconds without a request or data after which a watch is stuck: only a restart helps.
MAX_INACTIVITY: Final = IDLE_LIMIT + 90.0

Check = Callable[[], str]


class CheckedWatch(Protocol):
    """The fields of a watch that the health checks read."""

    resource: Resource
    missing: bool
    trouble: str
    received_at: float
    tried_at: float

    @property
    def synced(self) -> bool:
        """Whether its cache has been filled completely."""
        ...


def is_moving(watch: CheckedWatch, clock: Clock) -> Check:
    """Return the liveness check of a watch: it still sends or receives."""

    def check() -> str:
        idle = clock.monotonic() - watch.tried_at
        return (
            f"no request was sent and no event received for {idle:.0f} seconds"
            if idle > MAX_INACTIVITY
            else ""
        )

    return check


def is_fresh(watch: CheckedWatch, clock: Clock) -> Check:
    """Return the readiness check of a watch: its cache is up to date."""

    def check() -> str:
        if watch.missing:
            return ""  # the kind is not installed; nothing can be out of date
        trouble = f": {watch.trouble}" if watch.trouble else ""
        if not watch.synced:
            return f"not listed yet{trouble}"
        age = clock.monotonic() - watch.received_at
        return f"no event was received for {age:.0f} seconds{trouble}" if age > MAX_SILENCE else ""

    return check


class Health:
    """The checks of `/livez` and `/readyz`; each returns an error, or an empty text."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_live(self, name: str, check: Check) -> None:
        """Add a liveness check: the kubelet restarts the process when it fails."""
        self._live[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """Add a readiness check: the process is not ready while it fails."""
        self._ready[name] = check

    def add_watch(self, watch: CheckedWatch, clock: Clock) -> None:
        """Add both checks of a watch; several watches may be of the same kind."""
        first = f"watch-{watch.resource.full_name}"
        others = sum(name.startswith(first) for name in self._live)
        name = f"{first}-{others + 1}" if others else first
        self.add_live(name, is_moving(watch, clock))
        self.add_ready(name, is_fresh(watch, clock))

    def live(self) -> dict[str, str]:
        """Return the result of each liveness check by name; empty where it passes."""
        return _run(self._live)

    def ready(self) -> dict[str, str]:
        """Return the result of each readiness check, and of liveness checks that fail, by name."""
        ready = _run(self._ready)
        return ready | {name: text for name, text in self.live().items() if text}


def _run(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: check() for name, check in sorted(checks.items())}
