"""Campaign: plays many plans on all cores, with the same outcome as on one core."""

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

from everynode.sim.checks.check import Violation
from everynode.sim.differential import play_and_compare
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.plan import Plan
from everynode.sim.world import Result

T = TypeVar("T")
# Worlds have many reference cycles, which are slow to collect. A worker collects garbage only when
# a plan is very large, and is replaced after _SHIFT plans, before it needs much memory.
_SHIFT: Final = 80
_GC_THRESHOLD: Final = 1_000_000


class Outcome(msgspec.Struct, frozen=True):
    """The result of one plan; the plan itself is kept where a promise was broken."""

    result: Result
    plan: Plan | None = None


class CampaignTotals:
    """Totals over many plans, in their order."""

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0  # simulated
        self.commits = 0
        self.writes = 0
        self.fault_counts: Counter[str] = Counter()
        self.broken: list[Outcome] = []
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, outcome: Outcome) -> None:
        """Add one outcome."""
        result = outcome.result
        self.runs += 1
        self.seconds += result.seconds
        self.commits += result.commits
        self.writes += result.writes
        self.fault_counts.update(result.fault_counts)
        self._hash.update(result.trace.encode())
        if not result.kept:
            self.broken.append(outcome)

    @property
    def trace(self) -> str:
        """One hash over the histories of all plans."""
        return self._hash.hexdigest()


def play_safely(plan: Plan) -> Result:
    """Play a plan; an exception, such as a deadlock, counts as a violation of S0."""
    try:
        return play_and_compare(plan)[0]
    except Exception as error:
        violation = Violation(
            "S0", 0.0, f"the world came to an end: {type(error).__name__}: {error}"
        )
        return Result(plan.seed, plan.name, 0.0, 0, 0, "", (violation,))


def outcome_of(plan: Plan) -> Outcome:
    """Play a plan, and keep it if a promise was broken."""
    result = play_safely(plan)
    return Outcome(result) if result.kept else Outcome(result, plan)


def play_seed(seed: int) -> list[Outcome]:
    """Generate and play the plan of a seed."""
    return [outcome_of(generate_plan(seed))]


def run_in_parallel(
    work: Callable[[T], Sequence[Outcome]], items: Iterable[T], *, jobs: int
) -> Iterator[Sequence[Outcome]]:
    """Run `work` for every item in several processes; yield the results in the items' order."""
    if jobs == 1:
        yield from map(work, items)
        return
    how = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    left = iter(items)
    while some := list(islice(left, jobs * _SHIFT)):
        with ProcessPoolExecutor(jobs, mp_context=how, initializer=_begin) as pool:
            yield from pool.map(work, some)


def _begin() -> None:
    """Initialise a worker process: it ignores Ctrl-C, as the parent ends it, and logs nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
