"""The sums, the queues and the timers of a fleet, kept in order while single nodes change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from sortedcontainers import SortedList

from everynode.decide.assessment import EMPTY, Assessment, Profile, Queue
from everynode.decide.reasons import MOVING, QUIET


class Books:
    """What a fleet of assessments adds up to."""

    def __init__(self) -> None:
        self.queues: tuple[SortedList[str], ...] = tuple(SortedList() for _ in Queue)
        self._totals = list(EMPTY)
        self._waiting: dict[str, SortedList[str]] = {}  # by code, for nodes that are not done
        self._timers: SortedList[tuple[float, str]] = SortedList()

    @property
    def sums(self) -> Profile:
        """The fleet in numbers."""
        return Profile(*self._totals)

    @property
    def moving(self) -> int:
        """How many nodes get on by themselves, or because of us."""
        return sum([len(self._waiting[code]) for code in self._waiting if code in MOVING])

    @property
    def stuck(self) -> dict[str, SortedList[str]]:
        """The nodes that wait for something outside of us, by its code."""
        return {code: names for code, names in self._waiting.items() if code not in MOVING}

    @property
    def wake_at(self) -> float | None:
        """When the first node changes by itself."""
        return self._timers[0][0] if self._timers else None

    def ring(self, now: float) -> list[str]:
        """The nodes whose time has come."""
        rung = []
        while self._timers and self._timers[0][0] <= now:
            rung.append(self._timers.pop(0)[1])
        return rung

    def add(self, made: Assessment) -> None:
        """Enter one assessment."""
        for index, value in _parts(made.profile):
            self._totals[index] += value
        if made.queue:
            self.queues[made.queue].add(made.name)
        if made.reason.code not in QUIET:
            self._waiting.setdefault(made.reason.code, SortedList()).add(made.name)
        if made.wake_at is not None:
            self._timers.add((made.wake_at, made.name))

    def remove(self, made: Assessment) -> None:
        """Strike out one assessment."""
        for index, value in _parts(made.profile):
            self._totals[index] -= value
        if made.queue:
            self.queues[made.queue].remove(made.name)
        waiting = self._waiting.get(made.reason.code)
        if waiting is not None:
            waiting.remove(made.name)
            if not waiting:
                del self._waiting[made.reason.code]
        if made.wake_at is not None:
            self._timers.discard((made.wake_at, made.name))

    def add_all(self, fleet: Collection[Assessment]) -> None:
        """Enter many at once: sorting a whole list is cheaper than finding each one's place."""
        for profile, times in Counter([made.profile for made in fleet]).items():
            for index, value in _parts(profile):
                self._totals[index] += value * times
        for queue in Queue:
            if queue:
                self.queues[queue].update([made.name for made in fleet if made.queue is queue])
        codes = {made.reason.code for made in fleet}
        for code in sorted(codes - QUIET):
            names = [made.name for made in fleet if made.reason.code == code]
            self._waiting.setdefault(code, SortedList()).update(names)
        self._timers.update([(m.wake_at, m.name) for m in fleet if m.wake_at is not None])


@lru_cache(maxsize=1024)
def _parts(profile: Profile) -> tuple[tuple[int, int], ...]:
    """The few fields of a profile that are not zero; there are not many different profiles."""
    return tuple((index, int(value)) for index, value in enumerate(profile) if value)
