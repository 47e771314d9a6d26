"""Exponential back-off: how long to wait after a number of failures in a row.

All retries use this formula. Callers whose retries must not coincide add jitter themselves
(`Clock.jitter`), because that needs a source of randomness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MAX_DOUBLINGS: Final = 20  # beyond any limit in use; keeps the power finite


@dataclass(frozen=True, slots=True)
class Backoff:
    """A delay that doubles with every failure: `Backoff(1, 10)` gives 1, 2, 4, 8, 10, 10."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row, counted from 1."""
        return min(self.first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.longest)
