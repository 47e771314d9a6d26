"""Playing many plans, on as many cores as there are, with the same outcome as on one."""

from __future__ import annotations

import gc
import hashlib
import logging
import multiprocessing
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Final, TypeVar

import msgspec

from everynode.sim.draw import draw
from everynode.sim.invariants.promise import Breach
from everynode.sim.plan import Plan
from everynode.sim.reference import play_beside
from everynode.sim.world import Result

T = TypeVar("T")
_AHEAD: Final = 4  # pieces of work that wait for each worker
_GARBAGE: Final = (100_000, 20, 50)  # worlds are full of cycles, and are thrown away whole


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
    pool = ProcessPoolExecutor(jobs, mp_context=how, initializer=_begin)
    waiting: deque[Future[Sequence[Outcome]]] = deque()
    left = iter(items)
    try:
        waiting.extend(pool.submit(work, each) for each in islice(left, jobs * _AHEAD))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(work, each) for each in islice(left, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """A worker is told by its parent when to end; it has nothing to say itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
