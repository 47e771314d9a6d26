"""Runs of fuzz tests: number, first seed, and the report at the end."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any, Final

import pytest

RUNS: Final = int(os.environ.get("EVERYNODE_FUZZ_RUNS", "0"))
SEED: Final = int(os.environ.get("EVERYNODE_FUZZ_SEED", "1"))
MAX_CALLS: Final = 2_000_000


def seeds(usual: int) -> range:
    """The seeds of this run: `usual` of them, or as many as the environment asks for."""
    return range(SEED, SEED + (RUNS or usual))


def random_of(seed: int) -> Random:
    """The same numbers for the same seed on every machine."""
    return Random(seed)


class EndlessError(BaseException):
    """More calls than any request should need; no handler of errors swallows it."""


@contextmanager
def bounded(limit: int = MAX_CALLS) -> Iterator[None]:
    """Stop what goes on for too long, counted in calls rather than in seconds."""
    left = limit

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise EndlessError(f"more than {limit} calls, the last in {frame.f_code.co_filename}")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


class RunSummary:
    """What was done, printed at the end of a run."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.answers: Counter[str] = Counter()

    def tell(self, capsys: pytest.CaptureFixture[str], cases: range) -> None:
        """Print the summary; `pytest -q` shows it only where many cases were asked for."""
        if not RUNS:
            return
        answers = ", ".join(f"{count} {name}" for name, count in sorted(self.answers.items()))
        with capsys.disabled():
            sys.stdout.write(
                f"\n{self._what}: seeds {cases.start} to {cases.stop - 1}, "
                f"{self.answers.total()} in all ({answers})\n"
            )
