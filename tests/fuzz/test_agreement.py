"""A real API server and ours do the same with odd requests: the same code, the same object."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from everynode.clock import SystemClock
from everynode.kube.requests import JSON
from tests.agreement.normalise import Memory, _told
from tests.agreement.question import NAMESPACE, Question
from tests.agreement.servers import Server
from tests.fuzz import definitions, samples
from tests.fuzz.differences import Told, known
from tests.fuzz.generate import Generator
from tests.fuzz.requests import Asked, Requests
from tests.fuzz.runs import Told as Summary
from tests.fuzz.runs import random_of, seeds
from tests.fuzz.shrink import smallest
from tests.fuzz.values import encode

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(3600)]

_CLOCK = SystemClock()
_REQUESTS = 8
_HUNG_UP = 999  # no status, but the end of the connection
_SHRUNK = 10


def conversation(seed: int) -> list[Asked]:
    """The requests of one seed, about one kind that lives in a namespace."""
    random = random_of(seed)
    draw = Generator(random, calm=random.choice((20, 60, 200)))
    requests = Requests(draw, namespace="NS")
    if seed % 5 == 0:
        # Definitions are only tried: they are the same for all namespaces.
        made = [definitions.definition(draw, "gadgets") for _ in range(_REQUESTS)]
        path = samples.DEFINITIONS.collection()
        return [Asked("POST", path, (("dryRun", "All"),), encode(each)) for each in made]
    asked = requests.about(random.choice(samples.NAMESPACED), _REQUESTS)
    return [replace(each, accept=JSON) for each in asked if not each.watch]


async def compare(asked: list[Asked], real: Server, ours: Server) -> list[Told]:
    """Ask both in a new namespace: where they part for a reason that is not known."""
    space = f"ns{_CLOCK.name_suffix(8)}"
    parties = [(server, Memory(space)) for server in (real, ours)]
    await asyncio.gather(*(_answer(*party, NAMESPACE) for party in parties))
    parted = []
    for each in asked:
        question = Question(
            each.method, each.url, each.body or None, each.content_type, each.accept
        )
        answers = await asyncio.gather(*(_answer(*party, question) for party in parties))
        told = Told(each, *answers)
        if not _alike(told) and not known(told):
            parted.append(told)
            break  # from here on the servers hold different objects
        if not _alike(told):
            break
    return parted


async def _answer(server: Server, memory: Memory, question: Question) -> tuple[int, Any]:
    try:
        answer = await server.ask(memory.fill_in(question))
    except (aiohttp.ClientError, TimeoutError) as error:
        return _HUNG_UP, {"message": repr(error)}
    return answer.status, memory.plain(answer.body)


def _alike(told: Told) -> bool:
    """Both do it, with the same object, or both refuse it.

    Which of several mistakes a server names first is its own business; tests/agreement compares
    codes and messages where there is one mistake.
    """
    if told.real[0] < 300 or told.ours[0] < 300:
        return told.real == told.ours
    return told.ours[0] < 500 or told.real[0] >= 500


def _sort(told: Told) -> str:
    kind = "/".join(told.asked.path.split("/")[2:4]) + told.asked.path.rsplit("NS", 1)[-1]
    return f"{told.asked.method} {kind} {told.real[0]} {told.ours[0]}"


@pytest.mark.usefixtures("installed")
async def test_both_servers_do_the_same_with_odd_requests(
    real: Server, ours: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, cases = Summary("requests to both servers"), seeds(40)
    found: dict[str, tuple[int, list[Asked], Told]] = {}
    counted: Counter[str] = Counter()
    for seed in cases:
        asked = conversation(seed)
        summary.answers["requests"] += len(asked)
        for told in await compare(asked, real, ours):
            counted[_sort(told)] += 1
            found.setdefault(_sort(told), (seed, asked, told))
    summary.tell(capsys, cases)
    shown = []
    for sort, (seed, asked, _) in list(found.items())[:_SHRUNK]:

        async def fails(fewer: list[Asked], sort: str = sort) -> bool:
            return any(_sort(told) == sort for told in await compare(fewer, real, ours))

        fewer = await smallest(asked, fails)
        parted = await compare(fewer, real, ours)
        requests = "\n".join(f"  {each}" for each in fewer)
        answers = "\n".join(_told(told.real, told.ours) for told in parted)
        shown.append(f"seed {seed}, {counted[sort]} like it:\n{requests}\n{answers}")
    assert not shown, "\n\n".join(shown)
