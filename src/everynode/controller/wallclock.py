"""WallClock: detects that the wall clock was set, so that waits are not prolonged by it."""

from __future__ import annotations

from typing import Final

from everynode.clock import Clock

# Seconds. Time synchronisation moves a clock by less than this at a time.
_NOTABLE: Final = 1.0


class WallClock:
    """Compares the wall clock with the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()

    def behind(self) -> float:
        """Return how many seconds the clock has lost that `set_back` will return later."""
        return max(0.0, self._offset - (self._clock.now() - self._clock.monotonic()))

    def set_back(self) -> float:
        """Return by how many seconds the clock was set back since the last call; mostly zero.

        A negative value means that it was set forward.
        """
        offset = self._clock.now() - self._clock.monotonic()
        lost = self._offset - offset
        if -_NOTABLE < lost < _NOTABLE:
            return 0.0  # the offset is kept, so that small steps add up
        self._offset = offset
        return lost
