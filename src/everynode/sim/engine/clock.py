"""SimClock: virtual time, and random numbers from the seed, for one simulated process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator
from math import inf
from typing import Final

from everynode.api.keys import NAME_ALPHABET
from everynode.sim.engine.loop import SimLoop

EPOCH: Final = 1_767_225_600.0  # the wall clock at the beginning: 2026-01-01T00:00:00Z


class Killed(BaseException):
    """The process that waits here was killed. `except Exception` does not catch it."""


class SimClock:
    """One process's view of virtual time; a killed process never wakes again."""

    def __init__(self, loop: SimLoop, seed: object, *, skew: float = 0.0) -> None:
        self._loop = loop
        self.monotonic: Callable[[], float] = loop.time  # never set back
        self._random = random.Random(f"{seed}/clock")
        self._skew = skew  # how far the wall clock is ahead
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._dead = False
        self._frozen_until = 0.0
        self._rate = 1.0  # of the wall clock
        self._drifts_since = 0.0
        self._set_at = -inf

    def now(self) -> float:
        """Wall-clock time, in seconds since the epoch."""
        time = self._loop.time()
        if self._rate != 1.0:
            self._skew += (time - self._drifts_since) * (self._rate - 1.0)
            self._drifts_since = time
        return EPOCH + time + self._skew

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await self.pause(seconds)
        if self._frozen_until > self._loop.time():
            await self.thaw()

    async def thaw(self) -> None:
        """Wait while the process is frozen."""
        while self._frozen_until > self._loop.time():
            await self.pause(self._frozen_until - self._loop.time())

    async def pause(self, seconds: float) -> None:
        """Wait in virtual time, also while the process is frozen."""
        if self._dead:
            raise Killed
        if seconds <= 0:
            await NEXT_TURN
            if self._dead:
                raise Killed
            return
        future = self._loop.create_future()
        timer = self._loop.call_later(seconds, _wake, future)
        self._waiting[future] = None
        try:
            await future
        except BaseException:
            timer.cancel()  # its future is no longer awaited
            raise
        finally:
            self._waiting.pop(future, None)

    @property
    def set_at(self) -> float:
        """When the wall clock was last set; for a frozen process, when it can have noticed."""
        time = self._loop.time()
        if self._rate != 1.0:
            return time
        was_set = self._set_at > -inf
        return max(self._set_at, min(self._frozen_until, time)) if was_set else -inf

    @property
    def frozen(self) -> bool:
        """Whether the process is frozen now."""
        return self._frozen_until > self._loop.time()

    def uid(self) -> str:
        """A fresh unique id in the form of a UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        parts = (digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:])
        return "-".join(parts)

    def name_suffix(self, length: int = 5) -> str:
        """Random characters for a generated name."""
        return "".join(self._random.choices(NAME_ALPHABET, k=length))

    def jitter(self, low: float, high: float) -> float:
        """A random number between low and high."""
        return self._random.uniform(low, high)

    # --- Faults ------------------------------------------------------------------------------

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._skew += seconds
        self._set_at = self._loop.time()

    def drift(self, rate: float) -> None:
        """Make the wall clock run faster or slower from now on."""
        self.now()
        self._rate, self._drifts_since = rate, self._loop.time()

    def set_right(self) -> None:
        """Show the true time again, and unfreeze the process."""
        if self._skew:
            self._set_at = self._loop.time()
        self._skew, self._rate = 0.0, 1.0
        self._frozen_until = 0.0

    def freeze(self, seconds: float) -> None:
        """Freeze the process for a while: no sleep ends, no response is read."""
        self._frozen_until = max(self._frozen_until, self._loop.time() + seconds)

    def kill(self) -> None:
        """Kill the process: every pending sleep raises Killed."""
        self._dead = True
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(Killed())


class _Turn:
    """Yield once, so that all other ready tasks run first."""

    def __await__(self) -> Generator[None]:
        yield


NEXT_TURN: Final = _Turn()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
