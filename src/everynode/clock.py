"""Clock: the only source of time, sleep, randomness and unique ids; tests replace it."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from typing import Protocol

from everynode.api.keys import NAME_ALPHABET


class Clock(Protocol):
    """Interface to time and randomness for every part of Everynode."""

    def now(self) -> float:
        """Wall-clock time, in seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """A time that never decreases, for measuring durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep; for zero or less, only let other tasks run once."""
        ...

    def uid(self) -> str:
        """A new UUID."""
        ...

    def name_suffix(self, length: int = 5) -> str:
        """Random characters for a generated name."""
        ...

    def jitter(self, low: float, high: float) -> float:
        """A random number between low and high."""
        ...


class SystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._random = random.Random()

    def now(self) -> float:
        """Wall-clock time, in seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """A time that never decreases, for measuring durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep; for zero or less, only let other tasks run once."""
        await asyncio.sleep(max(0.0, seconds))

    def uid(self) -> str:
        """A new UUID."""
        return str(uuid.uuid4())

    def name_suffix(self, length: int = 5) -> str:
        """Random characters for a generated name."""
        return "".join(self._random.choices(NAME_ALPHABET, k=length))

    def jitter(self, low: float, high: float) -> float:
        """A random number between low and high."""
        return self._random.uniform(low, high)
