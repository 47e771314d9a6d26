"""The one door to time, sleep, randomness and fresh ids."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from typing import Protocol

# Kubernetes' own alphabet for generated names: no vowels, so that no words appear.
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Clock(Protocol):
    """What every part of Everynode may know of time and chance."""

    def now(self) -> float:
        """Wall-clock time, in seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """A time that never goes back, for measuring durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; returns at once for zero or less, after letting others run."""
        ...

    def uid(self) -> str:
        """A fresh unique id in the form of a UUID."""
        ...

    def name_suffix(self, length: int = 5) -> str:
        """Random characters for a generated name."""
        ...

    def jitter(self, low: float, high: float) -> float:
        """A random number between low and high."""
        ...


class SystemClock:
    """The clock of the machine we run on."""

    def __init__(self) -> None:
        self._random = random.Random()

    def now(self) -> float:
        """Wall-clock time, in seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """A time that never goes back, for measuring durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; returns at once for zero or less, after letting others run."""
        await asyncio.sleep(max(0.0, seconds))

    def uid(self) -> str:
        """A fresh unique id in the form of a UUID."""
        return str(uuid.uuid4())

    def name_suffix(self, length: int = 5) -> str:
        """Random characters for a generated name."""
        return "".join(self._random.choices(NAME_ALPHABET, k=length))

    def jitter(self, low: float, high: float) -> float:
        """A random number between low and high."""
        return self._random.uniform(low, high)
