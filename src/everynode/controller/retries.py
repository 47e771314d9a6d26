"""Retries: when to retry after failures in a row, and after a created object vanished."""

from __future__ import annotations

from dataclasses import dataclass

from everynode.backoff import Backoff


@dataclass(slots=True)
class Failures:
    """Failures of one thing in a row, and when it may be tried again."""

    count: int = 0
    retry_at: float = 0.0
    message: str = ""  # the API server's message; empty where it is not shown to users

    def add(self, now: float, backoff: Backoff, *, message: str = "") -> None:
        """Count one more failure; the next attempt waits longer."""
        self.count += 1
        self.retry_at = now + backoff.delay(self.count)
        self.message = message

    def clock_set_back(self, by: float) -> None:
        """Keep the remaining wait although the wall clock was set back."""
        self.retry_at -= by


@dataclass(slots=True)
class RecreateBackoff:
    """The pod or revision that was created last, and how often in a row it vanished.

    Another client may delete what we create, for instance the garbage collector while our watch
    does not show yet that the DaemonSet is gone. Without a pause we would race with it.
    """

    name: str
    vanished: int  # times in a row
    retry_at: float  # if it vanishes, it is not created again before then


def note_created(
    previous: RecreateBackoff | None, name: str, now: float, *, backoff: Backoff, lasting: float
) -> RecreateBackoff:
    """Return the back-off after `name` was created.

    The previous one counts as vanished if it has the same name and was created less than its pause
    and `lasting` seconds ago. A first recreation is immediate, later ones wait longer and longer.
    """
    vanished = 0
    if previous is not None and previous.name == name and now < previous.retry_at + lasting:
        vanished = previous.vanished + 1
    pause = backoff.delay(vanished) if vanished else 0.0
    return RecreateBackoff(name, vanished, now + pause)
