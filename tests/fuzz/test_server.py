"""The embedded server survives every request, and what it stores can be used."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz import samples
from tests.fuzz.generate import Generator
from tests.fuzz.play import FailureError, play
from tests.fuzz.requests import DrawnRequest, Requests, junk
from tests.fuzz.runs import RunSummary, random_of, seeds
from tests.fuzz.shrink import smallest

_REQUESTS = 12  # in one conversation
_SHRUNK = 8  # failures, so that a bad day ends some time
_RESTARTED = 4  # every fourth conversation is held with a server on a data folder


def conversation(seed: int) -> list[DrawnRequest]:
    """The requests of one seed."""
    random = random_of(seed)
    draw = Generator(random, calm=random.choice((8, 40, 40, 200)))
    requests = Requests(draw)
    if seed % 4 == 0:
        asked = requests.about_definitions(_REQUESTS)
    else:
        asked = requests.about(random.choice(samples.ALL), _REQUESTS)
    if random.random() < 0.2:
        asked.append(junk(draw))
    return asked


async def failure_of(
    asked: list[DrawnRequest], *, restarted: bool
) -> tuple[Counter[str], FailureError | None]:
    """What the answers were, or what went wrong."""
    try:
        if not restarted:
            return await play(asked), None
        with tempfile.TemporaryDirectory() as folder:
            return await play(asked, Path(folder)), None
    except FailureError as failure:
        return Counter(), failure


async def _shrunk(seed: int, asked: list[DrawnRequest], failure: FailureError) -> str:
    restarted = seed % _RESTARTED == 0

    async def fails(fewer: list[DrawnRequest]) -> bool:
        found = (await failure_of(fewer, restarted=restarted))[1]
        return found is not None and found.sort == failure.sort

    found = await smallest(asked, fails)
    again = (await failure_of(found, restarted=restarted))[1]
    requests = "\n".join(f"  {each}" for each in found)
    return f"seed {seed}: {again}\nthe smallest requests that show it:\n{requests}"


@pytest.mark.timeout(3600)
def test_no_request_breaks_the_server_or_its_store(capsys: pytest.CaptureFixture[str]) -> None:
    summary, cases, failures = RunSummary("requests to the embedded server"), seeds(60), []
    with asyncio.Runner() as runner:
        for seed in cases:
            asked = conversation(seed)
            answers, failure = runner.run(failure_of(asked, restarted=seed % _RESTARTED == 0))
            summary.answers += answers
            if failure is not None:
                failures.append((seed, asked, failure))
        summary.tell(capsys, cases)
        # One of each sort is enough to work on.
        kinds = {failure.sort: (seed, asked, failure) for seed, asked, failure in failures}
        shown = [runner.run(_shrunk(*each)) for each in list(kinds.values())[:_SHRUNK]]
    assert not shown, "\n\n".join(shown)
