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
        self.queued = 0  # how many nodes wait in them
        self._totals = list(EMPTY)
        self.moving = 0  # nodes that get on by themselves, or because of us
        # The nodes that wait for something outside of us, by its code.
        self.stuck: dict[str, SortedList[str]] = {}
        self._timers: SortedList[tuple[float, str]] = SortedList()

    @property
    def sums(self) -> Profile:
        """The fleet in numbers."""
        return Profile(*self._totals)

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
        self._count(made.profile, 1)
        self._line_up(made)
        self._note(made)
        self._set_timer(made)

    def remove(self, made: Assessment) -> None:
        """Strike out one assessment."""
        self._count(made.profile, -1)
        self._step_out(made)
        self._strike(made)
        self._stop_timer(made)

    def replace(self, before: Assessment, made: Assessment) -> None:
        """Enter a node's next assessment for the one before; mostly little is different."""
        if made.profile is not before.profile:
            totals = self._totals
            for index, value in _difference(before.profile, made.profile):
                totals[index] += value
        if made.queue is not before.queue:
            self._step_out(before)
            self._line_up(made)
        if made.reason.code != before.reason.code:
            self._strike(before)
            self._note(made)
        if made.wake_at != before.wake_at:
            self._stop_timer(before)
            self._set_timer(made)

    def add_all(self, fleet: Collection[Assessment]) -> None:
        """Enter many at once: sorting a whole list is cheaper than finding each one's place."""
        for profile, times in Counter([made.profile for made in fleet]).items():
            self._count(profile, times)
        self.queued += len([made for made in fleet if made.queue])
        for queue in Queue:
            if queue:
                self.queues[queue].update([made.name for made in fleet if made.queue is queue])
        codes = Counter([made.reason.code for made in fleet])
        self.moving += sum([codes[code] for code in codes if code in MOVING])
        for code in sorted(codes.keys() - QUIET - MOVING):
            names = [made.name for made in fleet if made.reason.code == code]
            self.stuck.setdefault(code, SortedList()).update(names)
        self._timers.update([(m.wake_at, m.name) for m in fleet if m.wake_at is not None])

    # --- The parts of an assessment ----------------------------------------------------------

    def _count(self, profile: Profile, times: int) -> None:
        totals = self._totals
        for index, value in _parts(profile):
            totals[index] += value * times

    def _line_up(self, made: Assessment) -> None:
        if made.queue:
            self.queues[made.queue].add(made.name)
            self.queued += 1

    def _step_out(self, made: Assessment) -> None:
        if made.queue:
            self.queues[made.queue].remove(made.name)
            self.queued -= 1

    def _note(self, made: Assessment) -> None:
        code = made.reason.code
        if code in MOVING:
            self.moving += 1
        elif code not in QUIET:
            if code not in self.stuck:
                self.stuck[code] = SortedList()
            self.stuck[code].add(made.name)

    def _strike(self, made: Assessment) -> None:
        code = made.reason.code
        if code in MOVING:
            self.moving -= 1
        elif code not in QUIET:
            self.stuck[code].remove(made.name)
            if not self.stuck[code]:
                del self.stuck[code]

    def _set_timer(self, made: Assessment) -> None:
        if made.wake_at is not None:
            self._timers.add((made.wake_at, made.name))

    def _stop_timer(self, made: Assessment) -> None:
        if made.wake_at is not None:
            self._timers.discard((made.wake_at, made.name))


@lru_cache(maxsize=1024)
def _difference(before: Profile, made: Profile) -> tuple[tuple[int, int], ...]:
    """The fields that differ, and by how much; nodes go from one profile to the next alike."""
    differences = [new - old for old, new in zip(before, made, strict=True)]
    return tuple((index, value) for index, value in enumerate(differences) if value)


@lru_cache(maxsize=1024)
def _parts(profile: Profile) -> tuple[tuple[int, int], ...]:
    """The few fields of a profile that are not zero; there are not many different profiles."""
    return tuple((index, int(value)) for index, value in enumerate(profile) if value)
