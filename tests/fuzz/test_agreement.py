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
from tests.agreement.normalise import Memory, difference_text
from tests.agreement.question import NAMESPACE, Question
from tests.agreement.servers import Server
from tests.fuzz import definitions, samples
from tests.fuzz.differences import Exchange, known
from tests.fuzz.generate import Generator
from tests.fuzz.requests import DrawnRequest, Requests
from tests.fuzz.runs import RunSummary, random_of, seeds
from tests.fuzz.shrink import smallest
from tests.fuzz.values import encode

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(3600)]

_CLOCK = SystemClock()
_REQUESTS = 8
_HUNG_UP = 999  # no status, but the end of the connection
_SHRUNK = 10


def conversation(seed: int) -> list[DrawnRequest]:
    """The requests of one seed, about one kind that lives in a namespace."""
    random = random_of(seed)
    draw = Generator(random, calm=random.choice((20, 60, 200)))
    requests = Requests(draw, namespace="NS")
    if seed % 5 == 0:
        # Definitions are only tried: they are the same for all namespaces.
        made = [definitions.definition(draw, "gadgets") for _ in range(_REQUESTS)]
        path = samples.DEFINITIONS.collection()
        return [DrawnRequest("POST", path, (("dryRun", "All"),), encode(each)) for each in made]
    asked = requests.about(random.choice(samples.NAMESPACED), _REQUESTS)
    return [replace(each, accept=JSON) for each in asked if not each.watch]


async def compare(asked: list[DrawnRequest], real: Server, ours: Server) -> list[Exchange]:
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
        exchange = Exchange(each, *answers)
        if not _alike(exchange) and not known(exchange):
            parted.append(exchange)
            break  # from here on the servers hold different objects
        if not _alike(exchange):
            break
    return parted


async def _answer(server: Server, memory: Memory, question: Question) -> tuple[int, Any]:
    try:
        answer = await server.ask(memory.fill_in(question))
    except (aiohttp.ClientError, TimeoutError) as error:
        return _HUNG_UP, {"message": repr(error)}
    return answer.status, memory.plain(answer.body)


def _alike(exchange: Exchange) -> bool:
    """Both do it, with the same object, or both refuse it.

    Which of several mistakes a server names first is its own business; tests/agreement compares
    codes and messages where there is one mistake.
    """
    if exchange.real[0] < 300 or exchange.ours[0] < 300:
        return exchange.real == exchange.ours
    return exchange.ours[0] < 500 or exchange.real[0] >= 500


def _sort(exchange: Exchange) -> str:
    kind = "/".join(exchange.asked.path.split("/")[2:4]) + exchange.asked.path.rsplit("NS", 1)[-1]
    return f"{exchange.asked.method} {kind} {exchange.real[0]} {exchange.ours[0]}"


@pytest.mark.usefixtures("installed")
async def test_both_servers_do_the_same_with_odd_requests(
    real: Server, ours: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, cases = RunSummary("requests to both servers"), seeds(40)
    found: dict[str, tuple[int, list[DrawnRequest], Exchange]] = {}
    counted: Counter[str] = Counter()
    for seed in cases:
        asked = conversation(seed)
        summary.answers["requests"] += len(asked)
        for exchange in await compare(asked, real, ours):
            counted[_sort(exchange)] += 1
            found.setdefault(_sort(exchange), (seed, asked, exchange))
    summary.tell(capsys, cases)
    shown = []
    for sort, (seed, asked, _) in list(found.items())[:_SHRUNK]:

        async def fails(fewer: list[DrawnRequest], sort: str = sort) -> bool:
            return any(_sort(exchange) == sort for exchange in await compare(fewer, real, ours))

        fewer = await smallest(asked, fails)
        parted = await compare(fewer, real, ours)
        requests = "\n".join(f"  {each}" for each in fewer)
        answers = "\n".join(difference_text(exchange.real, exchange.ours) for exchange in parted)
        shown.append(f"seed {seed}, {counted[sort]} like it:\n{requests}\n{answers}")
    assert not shown, "\n\n".join(shown)
