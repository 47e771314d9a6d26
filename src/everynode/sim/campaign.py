"""Playing many plans, on as many cores as there are, with the same outcome as on one."""

from __future__ import annotations

import gc
import hashlib
import logging
import multiprocessing
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import Final, TypeVar

import msgspec

from everynode.sim.draw import draw
from everynode.sim.invariants.promise import Breach
from everynode.sim.plan import Plan
from everynode.sim.reference import play_beside
from everynode.sim.world import Result

T = TypeVar("T")
# Worlds are full of cycles, which take time to find. A worker throws nothing away, unless a piece
# of work is very large, and is itself replaced after so many pieces, before it needs much memory.
_SHIFT: Final = 80
_GARBAGE: Final = 1_000_000


class Outcome(msgspec.Struct, frozen=True):
    """What came of one plan; the plan itself is kept where a promise was broken."""

    result: Result
    plan: Plan | None = None


class Tally:
    """What came of many plans, in their order."""

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0  # simulated
        self.commits = 0
        self.writes = 0
        self.struck: Counter[str] = Counter()
        self.broken: list[Outcome] = []
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        result = outcome.result
        self.runs += 1
        self.seconds += result.seconds
        self.commits += result.commits
        self.writes += result.writes
        self.struck.update(result.struck)
        self._hash.update(result.trace.encode())
        if not result.kept:
            self.broken.append(outcome)

    @property
    def trace(self) -> str:
        """One hash over all that happened in all worlds."""
        return self._hash.hexdigest()


def judge(plan: Plan) -> Result:
    """Play a plan; a world that cannot go on has broken a promise, too."""
    try:
        return play_beside(plan)[0]
    except Exception as error:
        breach = Breach("S0", 0.0, f"the world came to an end: {type(error).__name__}: {error}")
        return Result(plan.seed, plan.name, 0.0, 0, 0, "", (breach,))


def outcome_of(plan: Plan) -> Outcome:
    """Play a plan, and keep it if a promise was broken."""
    result = judge(plan)
    return Outcome(result) if result.kept else Outcome(result, plan)


def play_seed(seed: int) -> list[Outcome]:
    """Play what a seed stands for."""
    return [outcome_of(draw(seed))]


def spread(
    work: Callable[[T], Sequence[Outcome]], items: Iterable[T], *, jobs: int
) -> Iterator[Sequence[Outcome]]:
    """Do the work for every item, on several processes; the answers come in the items' order."""
    if jobs == 1:
        yield from map(work, items)
        return
    how = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    left = iter(items)
    while some := list(islice(left, jobs * _SHIFT)):
        with ProcessPoolExecutor(jobs, mp_context=how, initializer=_begin) as pool:
            yield from pool.map(work, some)


def _begin() -> None:
    """A worker is told by its parent when to end; it has nothing to say itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()
    gc.freeze()
    gc.set_threshold(_GARBAGE)
